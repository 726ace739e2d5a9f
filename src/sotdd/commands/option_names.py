"""Messages of the library in the words of the command line: ``--n-projections``, not ``n_projections``."""

from __future__ import annotations

import re

# Settings of the library that commands have as options.
_OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "device", "estimator", "features", "label", "label_law", "label_names", "max_points", "method", "min_points",
        "n_permutations", "n_projections", "n_quantiles", "noise_floor", "p", "rank_by", "rel_tol", "scale", "seed",
        "statistic", "where", "exclude", "one_hot", "dates", "missing", "overwrite",
    )
} | {"k": "-k"}  # fmt: skip

# What only Python can pass, or passes in other words.
_IN_PYTHON_ONLY = {
    "'quantiles', 'paper' or a label law": "'quantiles' or 'paper'",
    " or a NumPy Generator": "",
    "label=None (label= in a source text)": "--label ''",
    "encoding= (FILE::encoding=latin-1 in a source text)": "FILE::encoding=latin-1",
    "a function of a list of texts or the name": "the name",
    "convert them with transform=": "convert the file",
    "sotdd.sketch on the whole": "sotdd sketch on the whole",
    "dates=True": "--dates",
    "overwrite=True": "--overwrite",
    "; pass projections=": "",
    " to sotdd.open_dataset": "",
}

# Settings that a source text holds, after two colons; and what stands for a value there.
_IN_SOURCES = (
    "bins", "broken", "decimal", "drop_missing", "encoder", "encoding", "image_mode", "image_size", "name",
    "separator", "split",
)  # fmt: skip
_VALUES = {
    "encoder": "MODEL", "encoding": "latin-1", "image_mode": "L", "image_size": "28", "split": "NAME", "bins": "10",
    "max_points": "5000",
}  # fmt: skip
_OPENED = re.compile(r"sotdd\.open_dataset\(\.\.\., ((?:\w+=[^,)]*(?:, )?)+)\)")
_OF_SOURCE = re.compile(
    rf"(?<![\w/.:,'\"-])(?P<name>{'|'.join(_IN_SOURCES)})=(?:'(?P<text>[^']*)'|(?P<value>[\w.]*\w))?(?![\w'\"])"
)
_NO_LABEL = re.compile(r"(?<![\w:,'\"])label=None\b")

_NAMES = r"\w+(?:, \w+)*"
_SUBJECT = re.compile(rf"^{_NAMES}(?= (?:is|are|cannot be chosen)\b)")
_NOT_OURS = re.compile(rf"^s-OTDD has no setting ({_NAMES}): .*$")
_REFUSED = re.compile(rf"\bno setting ({_NAMES})")
_TAKEN = re.compile(rf": it takes ({_NAMES})\.")
# Quoted text is the user's own; a name inside a path is none of ours; a value may follow; short words need one.
_LONG = "|".join(name for name in _OPTIONS if "_" in name)
_SHORT = "|".join(name for name in _OPTIONS if "_" not in name and len(name) > 1)
_ANYWHERE = re.compile(
    r"(?<![\w=])(?:'[^']*'|\"[^\"]*\")"
    rf"|(?<![\w/.:-])(?P<name>(?:{_LONG})(?![\w/-]|\.\w)|(?:{_SHORT})(?==))(?:=(?:'(?P<text>[^']*)'|(?P<number>[\w.,]*\w))?)?"
)


def in_options(message: str) -> str:
    """Say options as a user types them.

    Ordinary words such as "scale" are taken for options only where they cannot be anything else.

    Examples
    --------
    >>> in_options("n_projections is 0: expected an integer of at least 1.")
    '--n-projections is 0: expected an integer of at least 1.'
    >>> in_options("method 'sw' has no setting max_points: it takes p, n_projections, inner.")
    "method 'sw' has no option --max-points: it takes --p, --n-projections."
    >>> in_options("labels are floats: pass bins=10 to sotdd.open_dataset for ten classes.")
    'labels are floats: pass FILE::bins=10 for ten classes.'
    >>> in_options("transport to the power p=9 overflows: use a smaller p or scale='pooled'.")
    'transport to the power p=9 overflows: use a smaller p or --scale pooled.'
    >>> in_options("write options as FILE::features=NAME,label=NAME")
    'write options as FILE::features=NAME,label=NAME'
    """
    for phrase, shorter in _IN_PYTHON_ONLY.items():
        message = message.replace(phrase, shorter)
    message = _OPENED.sub(lambda match: "FILE::" + ",".join(map(_in_source, match[1].split(", "))), message)
    message = _OF_SOURCE.sub(lambda match: "FILE::" + _in_source(match[0]), message)
    message = _NO_LABEL.sub("--label ''", message)
    message = _SUBJECT.sub(lambda match: _spelled(match[0]), message)
    message = _NOT_OURS.sub(
        lambda match: f"s-OTDD has no option {_spelled(match[1])}: leave it out, or choose a --method that takes it.",
        message,
    )
    message = _REFUSED.sub(lambda match: f"no option {_spelled(match[1])}", message)
    message = _TAKEN.sub(_only_options, message)
    # What follows FILE:: is spelled as sources are.
    parts = re.split(r"(FILE::\S+)", message)
    return "".join(part if part.startswith("FILE::") else _ANYWHERE.sub(_with_value, part) for part in parts)


def _in_source(setting: str) -> str:
    """A setting as a source text has it: ``image_size=28``, ``missing=drop``, ``drop_missing=true``, ``label=``."""
    name, _, value = setting.partition("=")
    value = value.strip("'")
    if value in ("", "..."):
        value = _VALUES.get(name, "VALUE")
    return f"{name}={'' if value == 'None' else value.lower() if value in ('True', 'False') else value}"


def _spelled(names: str) -> str:
    return ", ".join(_OPTIONS.get(name, name) for name in names.split(", "))


def _only_options(match: re.Match[str]) -> str:
    """The settings that a method takes, less those that only Python can pass."""
    options = [_OPTIONS[name] for name in match[1].split(", ") if name in _OPTIONS]
    return f": it takes {', '.join(options)}." if options else ": leave it out."


def _with_value(match: re.Match[str]) -> str:
    if match["name"] is None:
        return match[0]
    value = match["text"] or match["number"]
    return _OPTIONS[match["name"]] + (f" {value}" if value else "")
