"""The site: ``sphinx-build -W --keep-going -b html docs build/docs``. Nothing is fetched from the network."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from sphinx.application import Sphinx

import sotdd

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]
STYLE = HERE.parent / "examples" / "gallery" / "sotdd.mplstyle"

project = "sotdd"
author = "The sotdd developers"
copyright = author  # noqa: A001  # Sphinx's name
release = version = sotdd.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "parameter_types",
    "results",
    "verdicts",
]
exclude_patterns = ["_extensions", "drawings", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip"]
default_role = "py:obj"
language = "en"
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # functions and classes in this file are no reason to worry

# ------------------------------------------------------------------ pages

myst_enable_extensions = ["dollarmath", "colon_fence", "substitution"]
myst_substitutions = {
    "stands": f"Version {release}, Python 3.11 and newer · [changes](changes.md) · [security](security.md)",
}
myst_heading_anchors = 3
html_math_renderer = "mathml"

# ------------------------------------------------------------------ the reference

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # beside each parameter instead: see parameter_types
maximum_signature_line_length = 72  # longer ones take a line for each parameter, on a phone too
python_display_short_literal_types = True
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
ADDED_BY_SKLEARN = ("set_decision_function_request", "set_predict_request")

# ------------------------------------------------------------------ pictures


def plain_pictures(gallery_conf: object, name: str) -> None:
    """Every example starts from the same style; a warning in one of them fails the build."""
    import matplotlib.pyplot as plt

    plt.style.use(["default", STYLE])
    warnings.filterwarnings("error", module="sotdd")


sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": (plain_pictures,),
    "image_srcset": ["2x"],
    "download_all_examples": False,
    "show_signature": False,
    "capture_repr": ("__repr__",),  # as text, which is readable on dark pages too
    "min_reported_time": 1e9,  # how long an example takes says more about the machine
    "write_computation_times": False,
    "remove_config_comments": True,
    "notebook_extensions": set(),  # the scripts themselves are there to download
}

plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("svg", 100)]
plot_basedir = str(HERE / "drawings")
plot_pre_code = f"import matplotlib.pyplot as plt\nplt.style.use(['default', {str(STYLE)!r}])"

# ------------------------------------------------------------------ the look

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is copied can be run: no prompts, no output
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_selector = "div:not(.sphx-glr-script-out) > div.highlight > pre"

html_theme = "pydata_sphinx_theme"
html_title = "sotdd"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}  # else the theme complains in the console
html_theme_options = {
    "logo": {"text": "sotdd", "image_light": "_static/logo.svg", "image_dark": "_static/logo-dark.svg"},
    "icon_links": [{"name": "Source", "url": "https://github.com/sotdd/sotdd", "icon": "fa-brands fa-github"}],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 10,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {
    "index": [],
    "command-line": [],
    "settings": [],
    "inference": [],
}  # pages that have no others below them


def setup(app: Sphinx) -> None:
    """Leave out methods that scikit-learn adds to every estimator, whose text points into its own pages."""
    app.connect("autodoc-skip-member", lambda *seen: True if seen[2] in ADDED_BY_SKLEARN else None)
