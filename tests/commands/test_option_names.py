"""Errors name options as a user types them, and leave everything else as it is."""

import pytest
from typer.main import get_command

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
        "pass image_size=28, as in the method of the paper.",
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
    own = {"--fail-above", "--p-value", "--max-samples"}  # which commands check themselves
    assert {option for option in there if "-" in option.strip("-")} - own <= set(option_names._OPTIONS.values())
