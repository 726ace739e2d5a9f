"""Types and defaults beside the parameters and fields of the reference, read from signatures.

Docstrings need not repeat them. Classes that calls return are described by their fields, without a constructor.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any, Literal, get_args, get_origin

from sphinx.application import Sphinx

import sotdd
from sotdd.compute import engine as protocol

_NAMES = re.compile(r"^\*{0,2}[A-Za-z_]\w*(, \*{0,2}[A-Za-z_]\w*)*$")
# Longer annotations say less than the words below them.
_LONGEST = 60
# Names that a reader knows; types of our own that are not public say nothing to anyone.
_KNOWN = {
    "int", "float", "str", "bool", "bytes", "object", "None", "list", "tuple", "dict", "set", "array", "Sequence",
    "Mapping", "Iterable", "Iterator", "Callable", "Path", "PathLike", "Generator", "Hashable",
}  # fmt: skip


def setup(app: Sphinx) -> dict[str, object]:
    """Before numpydoc reads the docstring, which it does at the usual priority."""
    app.connect("autodoc-process-docstring", _add_types, priority=400)
    app.connect("autodoc-process-signature", _hide_constructor)
    return {"parallel_read_safe": True}


def _hide_constructor(app: Sphinx, what: str, name: str, obj: Any, *rest: Any) -> tuple[str, None] | None:  # noqa: ANN401
    """No signature for protocols, whose own is ``(*args, **kwargs)``, and for classes that document their fields."""
    described = "\nAttributes\n---" in (inspect.getdoc(obj) or "")
    return ("", None) if what == "class" and (described or getattr(obj, "_is_protocol", False)) else None


def _add_types(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ANN401
    try:
        parameters = inspect.signature(obj).parameters
    except (TypeError, ValueError):
        return
    # Names that only type checkers import are those of engines.
    names = vars(protocol) | (getattr(obj, "__globals__", None) or vars(sys.modules[obj.__module__]))
    inside = ""
    for number, line in enumerate(lines):
        underlined = number + 1 < len(lines) and set(lines[number + 1]) == {"-"}
        if underlined:
            inside = line if line in {"Parameters", "Attributes"} else ""
        elif inside and _NAMES.match(line):
            found = _said([parameters.get(part.strip("* ")) for part in line.split(",")], names, inside == "Parameters")
            lines[number] = f"{line} : {found}" if found else line


def _said(parameters: list[inspect.Parameter | None], names: dict[str, Any], with_default: bool) -> str:
    """The type that all of them have, and the default; fields have been filled in, so theirs says nothing."""
    known = [parameter for parameter in parameters if parameter is not None]
    if len(known) < len(parameters) or not known:
        return ""
    types = {_type(parameter, names) for parameter in known}
    defaults = {repr(parameter.default) for parameter in known if parameter.default is not parameter.empty}
    parts = [types.pop()] if len(types) == 1 else []
    if with_default and len(defaults) == 1 and all(parameter.default is not parameter.empty for parameter in known):
        default = defaults.pop()
        parts += [f"default {default}"] if len(default) <= _LONGEST and "object at" not in default else []
    return ", ".join(part for part in parts if part)


def _type(parameter: inspect.Parameter, names: dict[str, Any]) -> str:
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return ""
    if isinstance(annotation, str):
        meant = _evaluated(annotation, names)
        if get_origin(meant) is Literal:
            return " or ".join(repr(choice) for choice in get_args(meant))
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)", r"\1", text)
    text = re.sub(r"NDArray\[[^\]]*\]|Doubles", "array", text)
    unknown = set(re.findall(r"[A-Za-z_]\w*", text)) - _KNOWN - set(sotdd.__all__) - set(sotdd.results.__all__)
    return "" if unknown or len(text) > _LONGEST else text


def _evaluated(annotation: str, names: dict[str, Any]) -> object:
    """What an annotation stands for, where all of its names can be had when the program runs."""
    try:
        return eval(annotation, names)  # our own annotations
    except (NameError, TypeError, AttributeError):
        return None
