"""Properties that are computed once, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from typing import Any, TypeVar

_T = TypeVar("_T")


class kept_property(cached_property[_T]):  # noqa: N801  # used as a decorator
    """A property that keeps its first value.

    Until Python 3.12 `functools.cached_property` holds a lock while it computes, one for all instances. A process
    that forks while another thread computes leaves that lock held in the child for good. Without it, two threads may
    both compute the value, and one of them is kept.

    Examples
    --------
    >>> from sotdd.basics.kept import kept_property
    >>> class Circle:
    ...     @kept_property
    ...     def area(self):
    ...         print("computing")
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area + circle.area
    computing
    6.28
    """

    def __init__(self, function: Callable[[Any], _T]) -> None:
        super().__init__(function)
        self.lock: nullcontext[None] = nullcontext()  # in place of the lock; from Python 3.12 on, nobody looks for it
