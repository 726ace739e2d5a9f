"""Optional libraries: what is missing is called missing, and nothing else is."""

import pytest

from sotdd.basics.errors import SotddError, require


def test_a_missing_library_is_called_missing():
    with pytest.raises(SotddError, match=r"no_library.*pip install 'no'"):
        require("no_library", "this", "'no'")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import no_such_part", "no_such_part"),
        ("raise OSError('cannot map memory\\nand more')", "cannot map memory"),
        ("raise MemoryError", "MemoryError"),
    ],
)
def test_a_library_that_cannot_be_loaded_is_not_called_missing(tmp_path, monkeypatch, text, why):
    (tmp_path / "strange_library.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SotddError, match=why) as refused:
        require("strange_library", "this", "strange")
    assert "not installed" not in str(refused.value)
    assert "\n" not in str(refused.value)
