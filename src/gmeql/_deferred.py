"""Modules that other packages import but hardly use, loaded when first used."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


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
    stand_ins = {
        name: _Deferred(name)
        for name in names
        if name not in sys.modules and importlib.util.find_spec(name) is not None
    }
    for stand_in in stand_ins.values():
        del stand_in.__spec__  # the one of every new module would shadow `__getattr__`
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
