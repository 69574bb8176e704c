"""Modules that other packages import but hardly use, loaded when first used."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

HARDLY_USED_BY_SKLEARN = (
    "pandas", "narwhals", "narwhals.stable", "narwhals.stable.v2", "scipy.stats", "scipy.special", "numpy.f2py",
    "numpy.testing", "numpy.ma", "numpy.polynomial", "numpy.char", "asyncio", "pydoc",
)  # fmt: skip
"""Imported by scikit-learn, SciPy and joblib for a few functions each, and two thirds of the time that scikit-learn takes."""


class _Deferred(ModuleType):
    """Stands for a module that is loaded when anything of it is asked for; it holds nothing itself."""

    def __getattr__(self, name: str) -> Any:
        if name == "__spec__":  # what the import statement asks for; no spec means that nothing is under way
            return None
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


@contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Inside, `import name` costs nothing: whoever imports gets a stand-in that loads the module at its first use.

    For packages that import more than most of their users need. Afterwards the modules can be imported by anyone as
    ever, and only what was imported inside holds stand-ins. Modules that are loaded already, or not installed, are
    left alone.

    >>> with deferred("colorsys"):
    ...     import colorsys
    >>> colorsys.rgb_to_hsv(0.0, 0.0, 1.0)[2]
    1.0
    """
    stand_ins: dict[str, _Deferred] = {}
    packages: dict[str, ModuleType] = {}
    for name in names:
        package = name.rpartition(".")[0]
        if name not in sys.modules and (package in stand_ins or _is_installed(name)):
            stand_ins[name] = sys.modules[name] = stand_in = _Deferred(name)
            del stand_in.__spec__  # the one of every new module would shadow `__getattr__`
            if package:
                packages[name] = sys.modules[package]
                setattr(packages[name], name.rpartition(".")[2], stand_in)  # as import does
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
            if name in packages and vars(packages[name]).get(name.rpartition(".")[2]) is stand_in:
                delattr(packages[name], name.rpartition(".")[2])


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # nor is its package
        return False
