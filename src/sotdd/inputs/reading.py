"""How data are read: every option of `sotdd.open_dataset` once, with all that is known of it.

An option is a field of `Reading`. Its metadata say what it does, how a value is checked and written as text, which
sources it means something to, and who else offers it. Signatures, help, source texts and the command line follow.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import numpy as np

from sotdd.basics.errors import SotddError, UnknownSetting, check_choice, check_count, check_seed, describe
from sotdd.inputs.schema import Schema

Name = str | int

# A label of this value leaves the choice to the loader.
AUTO = "auto"

# The encoder of texts that needs no model: it counts words by their hashes.
HASHING = "hashing"

# Images of this many pixels a side are what Pillow considers safe; more bins than this are hardly classes.
_LARGEST_SIDE = 10_000
_MOST_BINS = 10_000
# So many values of a column of categories become features.
_MOST_CATEGORIES = 20
_MANY_CATEGORIES = 10_000
# Names for the characters that the text of a source has another use for.
_CHARACTERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " ", "point": ".", "dot": "."}

# What data are read from.
Kind: TypeAlias = Literal[
    "a dataset that is open", "arrays", "a frame", "a CSV file", "a table", "a workbook", "a database", "an .npz file",
    "an .npy file", "a folder", "a Hugging Face dataset", "a torch dataset", "a stream",
]  # fmt: skip
_NEW: tuple[Kind, ...] = get_args(Kind)[1:]  # what is not open yet
_WHOLE: tuple[Kind, ...] = get_args(Kind)[:-1]  # what is not a stream
_CSV: tuple[Kind, ...] = ("a CSV file",)
_SHEETS: tuple[Kind, ...] = ("a workbook", "a database")
_TABLES: tuple[Kind, ...] = (*_CSV, *_SHEETS, "a frame", "a table", "a Hugging Face dataset", _NEW[-1])


@dataclass(frozen=True)
class Option:
    """What is known of one option.

    Attributes
    ----------
    help
        What it does, and what else there is to know.
    take
        A function of a value and the name of the option that returns what is meant, or raises a ValueError.
    expected
        What is said of such an error.
    parse
        A function of a text that returns a value.
    between
        What stands between several values in a text.
    sources
        The kinds of sources it means something to.
    kept
        Whether a drift reference keeps it for its batches. An encoder is not: a file must not name code to load.
    type
        What the command line takes it as, where it offers it: bool for a flag. None where it does not.
    metavar, choices
        What stands for its value in help, and the values there are, where these are few.
    """

    help: str
    take: Callable[[Any, str], Any] = lambda value, _: value
    expected: str = ""
    parse: Callable[[str], Any] = str
    between: str = "+"
    sources: tuple[Kind, ...] = _WHOLE
    kept: bool = False
    type: type | None = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()

    def check(self, value: Any, name: str) -> Any:  # noqa: ANN401  # anything
        """What is meant by a value, or refuse it."""
        try:
            return check_choice(value, name, self.choices) if self.choices else self.take(value, name)
        except SotddError:
            raise
        except (ValueError, TypeError, LookupError):
            raise SotddError(f"is {describe(value)}: expected {self.expected}.", setting=name) from None

    def write(self, value: Any) -> str:  # noqa: ANN401  # whatever it takes
        """A value as `parse` reads it."""
        if isinstance(value, (list, tuple)):
            return self.between.join(map(str, value))
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _option(default: Any, help: str, **known: Any) -> Any:  # noqa: A002, ANN401  # as `Option` takes it
    return field(default=default, metadata={"option": Option(help, **known)})


def _parse_value(text: str) -> Any:  # noqa: ANN401  # what is neither is refused when it is checked
    """A truth value, a whole number, or two of them as in 28x32; anything else as it is."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        numbers = [int(number) for number in text.lower().split("x")]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def _take_names(names: Any, name: str) -> tuple[Any, ...]:  # noqa: ANN401  # anything
    """One name or pattern, or several; features may also go by number, and nothing may be excluded."""
    kinds = (str, int) if name == "features" else (str,)
    several = () if names is None else (names,) if isinstance(names, kinds) else names
    known = isinstance(several, (list, tuple)) and (len(several) > 0 or name != "features")
    if not known or any(isinstance(one, bool) or not isinstance(one, kinds) for one in several):
        raise ValueError
    "".join(map(str, several)).encode()  # a lone surrogate is in no table
    return tuple(several)


def _only(test: Callable[[Any], bool]) -> Callable[[Any, str], Any]:
    """Take what passes a test as it is."""

    def take(value: Any, _: str) -> Any:  # noqa: ANN401  # anything
        if not test(value):
            raise ValueError
        return value

    return take


def _is_encoder(value: Any) -> bool:  # noqa: ANN401  # anything
    """Whether a value can encode; what has ``transform`` is fitted, such as a pipeline of scikit-learn."""
    named = value != "" if isinstance(value, str) else not isinstance(value, type)
    return named and (callable(value) or hasattr(value, "encode") or hasattr(value, "transform"))  # as a text can


def _take_one_hot(one_hot: Any, _: str) -> int:  # noqa: ANN401  # anything
    """The most values of a column that becomes one feature per value; 0 for no such columns."""
    if isinstance(one_hot, (bool, np.bool_)):
        return _MOST_CATEGORIES if one_hot else 0
    if not isinstance(one_hot, (int, np.integer)) or not 2 <= one_hot <= _MANY_CATEGORIES:
        raise ValueError
    return int(one_hot)


def _take_character(value: Any, name: str) -> str:  # noqa: ANN401  # anything
    character = _CHARACTERS.get(value.lower(), value) if isinstance(value, str) else value
    allowed = ".," if name == "decimal" else set(map(chr, range(128))) - set('"\r\n')
    if not isinstance(character, str) or len(character) != 1 or character not in allowed:
        raise ValueError
    return character


def _take_image_size(size: Any, name: str) -> tuple[int, int]:  # noqa: ANN401  # anything
    height, width = (size, size) if isinstance(size, int) else size
    return check_count(height, name, _LARGEST_SIDE), check_count(width, name, _LARGEST_SIDE)


# How values of a kind are taken and read from text.
_NAMES = {
    "take": _take_names,
    "expected": "a name, or a list of names",
    "parse": lambda text: text.split("+") if "+" in text else text,
}
_CHARACTER = {"take": _take_character, "sources": _CSV, "kept": True}


class TableSettings(TypedDict, total=False):
    """What every call takes of how data are read, for type checkers; `Reading` says what each option is."""

    label: str | int | None
    features: str | int | Sequence[str | int] | None
    exclude: str | Sequence[str] | None
    one_hot: bool | int
    missing: Literal["mean", "drop", "error"]
    na_values: str | Sequence[str] | None
    separator: str | None
    decimal: str | None
    encoding: str | None
    table: str | None
    split: str | None
    image_size: int | tuple[int, int] | None
    image_mode: Literal["L", "RGB"] | None
    encoder: object | None
    bins: int | None
    groups: str | Sequence[Any] | None
    blocks: int | None


class ReadingSettings(TableSettings, total=False):
    """What `sotdd.open_dataset` takes."""

    max_points: int | None
    seed: int


@dataclass(frozen=True)
class Reading:
    """What `sotdd.open_dataset` was asked for, checked once.

    Examples
    --------
    >>> from sotdd.inputs.reading import Reading
    >>> Reading.of(label="species", features="x_*", one_hot=True).one_hot
    20
    """

    label: Name | None = _option(  # noqa: RUF009  # a field
        AUTO,
        "The column or array of labels, or the .npy file with them; None, or an empty text, for one class. By default "
        "the only column named label, labels, target, y or class, unless it holds many floats.",
        take=_only(lambda label: label is None or (isinstance(label, (str, int)) and not isinstance(label, bool))),
        expected="the name of a column, or None for one class",
        parse=lambda text: text or None,
        sources=_NEW,
        kept=True,
        type=str,
    )
    features: tuple[Name, ...] | None = _option(
        None,
        "The columns or the array of features, as a+b in a text; patterns such as 'x_*' stand for several. By default "
        "all columns of numbers, truth values and categories but labels and ids; what is left out is named.",
        **_NAMES,
        sources=(*_TABLES, "an .npz file", "a torch dataset"),
        type=str,
    )
    exclude: tuple[str, ...] = _option(
        (),
        "Columns to leave out, as a+b in a text, or patterns such as 'id_*'.",
        **_NAMES,
        sources=_TABLES,
        type=str,
    )
    one_hot: int = _option(
        _MOST_CATEGORIES,
        "How many values of a category become a feature each; the rarer ones share one. False leaves categories out.",
        take=_take_one_hot,
        expected=f"True, False, or the most values of a column, from 2 to {_MANY_CATEGORIES:,}",
        parse=_parse_value,
        sources=_TABLES,
        kept=True,
        type=str,
        metavar="N",
    )
    missing: str = _option(
        "mean",
        "Missing values: mean fills in the mean of the column and compares how many are missing, drop leaves out rows "
        "in which a feature is missing, error refuses them. Rows without a label are left out. NaN in "
        "the features of an array is always refused.",
        choices=("mean", "drop", "error"),
        sources=_NEW,
        kept=True,
        type=str,
    )
    na_values: tuple[str, ...] = _option(
        (),
        "What else stands for a missing value, as a+b in a text, beside an empty cell, NA, null, None, nan, ? and -.",
        **_NAMES,
        sources=_TABLES,
        kept=True,
        type=str,
    )
    separator: str | None = _option(
        None,
        "What stands between the fields of a CSV file: ';', 'comma', 'tab'; by default found from its header.",
        **_CHARACTER,
        expected=f"one character, or one of {', '.join(_CHARACTERS)}",
    )
    decimal: str | None = _option(
        None,
        "What stands before fractions in a CSV file: 'comma', or 'point', the default.",
        **_CHARACTER,
        expected="'comma' or 'point'",
    )
    encoding: str | None = _option(
        None,
        "How the letters of a CSV file are encoded; by default UTF-8.",
        take=lambda value, _: codecs.lookup(value).name,
        expected="the name of one, such as 'utf-8', 'latin-1' or 'cp1252'",
        sources=_CSV,
        kept=True,
    )
    table: str | None = _option(
        None,
        "Which table of a database, or which sheet of a workbook; by default the only one.",
        take=_only(lambda value: isinstance(value, str)),
        expected="the name of a table",
        sources=_SHEETS,
        kept=True,
    )
    split: str | None = _option(
        None,
        "Which split: train of X_train and y_train in an .npz file, of a folder train/, or of a `DatasetDict`.",
        take=_only(lambda value: isinstance(value, str) and value != ""),
        expected="the name of a split, such as 'train'",
        sources=("an .npz file", "a folder", "a Hugging Face dataset"),
    )
    image_size: tuple[int, int] | None = _option(
        None,
        "The (height, width) to bring images to, as 28x32 in a text, or one number for a square. Arrays are images if "
        "they are (n, height, width), with 1 or 3 channels last, or first as in torch.",
        take=_take_image_size,
        expected="(height, width) or one number for a square",
        parse=_parse_value,
        between="x",
        kept=True,
        type=str,
        metavar="N",
    )
    image_mode: str | None = _option(
        None, "Whether images become grey, 'L', or coloured, 'RGB'.", choices=("L", "RGB"), kept=True, type=str
    )
    encoder: Any = _option(  # noqa: RUF009  # a field
        None,
        "What turns texts, images or rows into vectors, each by itself: a function of a batch, an object with "
        "``encode``, the name of a sentence-transformers model, or 'hashing', which counts words and needs no model. "
        "It gets a list of texts, an array of numbers, or of images where ``image_size`` is given, or else a list of "
        "Pillow images.",
        take=_only(_is_encoder),
        expected="a function of a batch, an object with encode or transform, or the name of a sentence-transformers "
        "model",
    )
    bins: int | None = _option(
        None,
        "Cut labels that are numbers into this many classes of about equal size, by quantiles.",
        take=lambda value, name: check_count(value, name, _MOST_BINS),
        parse=_parse_value,
        kept=True,
    )
    groups: str | tuple[Any, ...] | None = _option(
        None,
        "The column that says which rows belong together, such as a person, and is no feature; or an array of that, "
        "one entry per row. Tests and noise floors permute whole groups.",
        take=lambda value, _: (
            value if isinstance(value, str) else tuple(np.asarray(value).reshape(len(value)).tolist())
        ),
        expected="the name of a column, or one entry per row",
        kept=True,
        type=str,
    )
    blocks: int | None = _option(
        None,
        "This many consecutive rows belong together, as in a series whose neighbours are alike. Tests and noise floors "
        "permute whole blocks.",
        take=check_count,
        parse=_parse_value,
        kept=True,
        type=int,
        metavar="N",
    )
    max_points: int | None = _option(
        None,
        "Take a sample of this many points of each dataset, without replacement.",
        take=check_count,
        parse=_parse_value,
    )
    seed: int = _option(0, "The seed of that sample.", take=lambda value, _: check_seed(value), parse=_parse_value)
    # No option: the columns of another table, which are read alike. `open_alike` passes it.
    schema: Schema | None = None

    @classmethod
    def of(cls, **asked: Any) -> Reading:  # noqa: ANN401  # anything
        """Check what was asked for; values that are the defaults themselves need no check."""
        unknown = [name for name in asked if name not in OPTIONS]
        if unknown:
            raise UnknownSetting(f"there is no option {', '.join(unknown)} of reading data: check the spelling.")
        given = {name: value for name, value in asked.items() if value is not getattr(DEFAULTS, name)}
        reading = cls(**{name: OPTIONS[name].check(value, name) for name, value in given.items()})
        if reading.separator is not None and reading.separator == reading.decimal:
            raise SotddError(f"separator and decimal are both {reading.separator!r}: expected two characters.")
        if reading.groups is not None and reading.blocks is not None:
            raise SotddError("groups and blocks are both given: blocks are groups of neighbours, so leave one out.")
        return reading if reading.prepares or reading != DEFAULTS else DEFAULTS

    def refuse(self, source: str, *names: str) -> None:
        """Refuse these options, which mean nothing to a source; by default those that mean nothing to its kind."""
        for name in names or [name for name, option in OPTIONS.items() if source not in option.sources]:
            if getattr(self, name) != getattr(DEFAULTS, name):
                raise SotddError(f"is given but means nothing to {source}: leave it out.", setting=name)

    def like(self, schema: Schema | None) -> Reading:
        """The same for a table that is read as another; features that were asked for by name take precedence."""
        return self if schema is None or self.features is not None else replace(self, schema=schema)

    @property
    def label_is_auto(self) -> bool:
        """Whether the loader chooses the labels."""
        return self.label == AUTO

    @property
    def label_column(self) -> Name | None:
        """The column or array of labels that was named; None where none was."""
        return None if self.label_is_auto else self.label

    @property
    def unlabelled(self) -> bool:
        """Whether all points are to be one class."""
        return self.label is None

    @property
    def prepares(self) -> bool:
        """Whether anything is to be done to features that are numbers already."""
        return any(step is not None for step in (self.encoder, self.image_size, self.image_mode))


# What is known of each option, by name.
OPTIONS: Mapping[str, Option] = {one.name: one.metadata["option"] for one in fields(Reading) if one.metadata}
DEFAULTS = Reading()
