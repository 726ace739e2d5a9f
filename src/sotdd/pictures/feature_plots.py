"""Plots of which features make a distance: bars by name, or a picture of pixels."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from sotdd.basics.text import counted
from sotdd.pictures import style
from sotdd.results.features import FeatureShare, FeatureShares

# Bars that are drawn, those that matter first.
_BARS = 15

# Shares below zero are warm, above cool, and none is white.
_SHARES = LinearSegmentedColormap.from_list("sotdd_shares", (style.WARM, "#f3d9c6", "#ffffff", "#a8cbe6", "#0b2f57"))


def draw_features(features: FeatureShares, ax: Axes | None = None) -> Axes:
    """Draw the share of every pixel where points are images; else bars of the features that matter most."""
    return _picture(features, ax) if features.shape is not None else _bars(features, ax)


def _bars(features: FeatureShares, ax: Axes | None) -> Axes:
    shown = [one for _, one in zip(range(_BARS), features, strict=False)]
    if len(features) > 1:
        shown.append(features.together)
    ax = style.fresh(ax, 6.4, 1.4 + 0.3 * len(shown))
    places = np.arange(len(shown))
    values = [_share(one) for one in shown]
    errors = [0.0 if np.isnan(one.stderr) else one.stderr for one in shown]
    colours = [style.ACCENT if one.beyond_noise else style.RULE for one in shown]
    ax.barh(places, values, xerr=errors, color=colours, error_kw={"ecolor": style.QUIET, "elinewidth": 1}, height=0.7)
    ax.axvline(0, color=style.RULE, linewidth=1)
    names = [style.shortened(one.name) for one in shown]
    if len(features) > 1:
        names[-1] = f"{features.noun}s together"
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.xaxis.set_major_formatter(lambda value, _place: f"{value:.0%}")
    ax.set_xlabel(_unit(features))
    style.quiet(ax, sides=("bottom",))
    ax.tick_params(axis="y", length=0)
    more = f"; the first {_BARS} of {len(features):,}" if len(features) > _BARS else ""
    style.titled(ax, f"Which {features.noun}s make the distance", f"blue: beyond noise; lines: standard errors{more}")
    return ax


def _picture(features: FeatureShares, ax: Axes | None) -> Axes:
    ax = style.fresh(ax, 4.8, 4.4, "compressed")
    pixels = features.pixels
    most = float(np.abs(pixels).max()) or 1.0
    image = ax.imshow(pixels, cmap=_SHARES, vmin=-most, vmax=most)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02, format=lambda value, _place: f"{value:.1%}")
    bar.outline.set_visible(False)
    bar.set_label(_unit(features), color=style.QUIET, fontsize=8)
    ax.set_xticks([])
    ax.set_yticks([])
    style.quiet(ax, sides=())
    beyond = len(features.beyond_noise)
    style.titled(ax, "Which pixels make the distance", f"{beyond:,} of {counted(len(features), 'pixel')} beyond noise")
    return ax


def _share(one: FeatureShare) -> float:
    return one.raw_share - one.by_chance if np.isnan(one.share) else one.share


def _unit(features: FeatureShares) -> str:
    return (
        "share of the distance, less that of chance"
        if np.isnan(features.shares).any()
        else "share of what is beyond noise"
    )
