"""Errors name options as a user types them, and leave everything else as it is."""

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

import sotdd
from sotdd.commands import option_names
from sotdd.commands.app import app
from sotdd.commands.option_names import in_options


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("n_projections is 0: expected an integer of at least 1.", "--n-projections is 0:"),
        ("seed, label_law cannot be chosen for a sketch.", "--seed, --label-law cannot be chosen"),
        ("seed is -1: expected an integer of at least 0 or a NumPy Generator.", "--seed is -1: expected an integer of"),
        ("k is 0: expected an integer of at least 1.", "-k is 0"),
        ("method 'sw' has no setting rel_tol: leave it out.", "method 'sw' has no option --rel-tol: leave it out."),
        ("method 'x' has no setting p: it takes inner, outer.", "method 'x' has no option --p: leave it out."),
        ("it does not fit: pass max_points=5,000, or use method 'sotdd'.", "pass --max-points 5,000, or use method"),
        ("the columns differ: name them with features=.", "name them with --features."),
        ("device='cuda' needs torch.", "--device cuda needs torch."),
        ("pass image_size=28, as in the method of the paper.", "pass FILE::image_size=28, as"),
        (
            "open both with sotdd.open_dataset(..., image_size=..., image_mode=...).",
            "FILE::image_size=28,image_mode=L.",
        ),
        ("as sotdd.open_dataset(..., drop_missing=True) does, or", "as FILE::drop_missing=true does, or"),
        ("is one class with sotdd.open_dataset(..., label=None).", "is one class with FILE::label=."),
        ("or a sample of the points: sotdd.open_dataset(..., max_points=...)", "the points: FILE::max_points=5000"),
        ("expected (point, label); pass label=None for one class.", "pass --label '' for one class."),
        ("choose another name, or pass overwrite=True.", "or pass --overwrite."),
        ("mend or remove it, or pass broken='skip'.", "or pass FILE::broken=skip."),
        ("has the splits test, train: choose one with split=.", "choose one with FILE::split=NAME."),
        ("by encoding= (FILE::encoding=latin-1 in a source text).", "by FILE::encoding=latin-1."),
        (
            "label_names='match' is given with statistic='balanced'.",
            "--label-names match is given with --statistic bal",
        ),
    ],
)
def test_settings_become_options(message, said):
    assert said in in_options(message)


@pytest.mark.parametrize(
    "message",
    [
        "features that differ by 1e+300 cannot be scaled in float64: bring them to a usual range first.",
        "labels of dataset 'scale' do not form an array.",
        "cannot read 'label=' in 'b.npz::label=': expected NAME=VALUE.",
        "there is no file label_law.npz: check the path.",
        "there is no file data/max_points/a.npz: check the path.",
        "transport to the power p=2 overflows: use a smaller p.",
        "dataset 'b' has 2 features but dataset 'a' has 1: every dataset needs the same features.",
        "a.npz has no array 'n_projections', only X, y.",
        "there is no file a.csv::image_size=28,bins=3: check the path.",
    ],
)
def test_other_words_stay(message):
    assert in_options(message) == message


def test_every_option_with_two_words_is_known():
    """An option that is new is told about by its own name, and no option is that is gone."""
    group = get_command(app)
    commands = [*group.commands.values(), *group.commands["catalog"].commands.values()]
    there = {option for command in commands for part in command.params for option in part.opts}
    assert set(option_names._OPTIONS.values()) <= there
    # Which commands check themselves; sizes of images are said as in a source text, which is right everywhere.
    own = {"--fail-above", "--p-value", "--max-samples", "--image-size"}
    assert {option for option in there if "-" in option.strip("-")} - own <= set(option_names._OPTIONS.values())


# What a user of the command line never meets: made by Python alone.
_IN_PYTHON = (
    "gradients/", "integrations/", "sketches/private", "sketches/cluster", "pictures/report.py",
)  # fmt: skip
_PYTHON_ONLY = {
    "asynchronous", "classes", "datasets", "debias", "dim", "kernels", "max_norm", "moments", "outer", "p",
    "projections", "reach", "transform", "year",
}  # fmt: skip


def raised_messages():
    """Every text that is raised anywhere in the package, with gaps where names and numbers are put in."""
    root = Path(sotdd.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if str(path.relative_to(root)).startswith(_IN_PYTHON):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                for part in ast.walk(node.exc):
                    if isinstance(part, ast.JoinedStr) or (
                        isinstance(part, ast.Constant) and isinstance(part.value, str)
                    ):
                        yield str(path.relative_to(root)), _text(part)


def _text(part):
    if isinstance(part, ast.Constant):
        return part.value
    return "".join(piece.value if isinstance(piece, ast.Constant) else "9" for piece in part.values)


def test_no_error_speaks_python_on_the_command_line():
    """Of every message in the package that names a setting, none is left as Python passes it."""
    seen = 0
    for path, message in raised_messages():
        said = in_options(message)
        left = re.findall(r"(?<![:\w,])([a-z_]+)=(?![=>])", re.sub(r"\w*::\S+", "", said))
        assert set(left) <= _PYTHON_ONLY, (path, said)
        assert "sotdd.open_dataset" not in said, (path, said)
        seen += said != message
    assert seen > 30
