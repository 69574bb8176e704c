"""Compiled functions that are kept on disk until anything they were made from changes.

Numba keeps a compiled function until the one file that it stands in changes; what it calls in other files, and the
numbers it takes in from them, may change unnoticed. Here the name of a function carries a key of all that: the sources
of its folder, in which everything it calls must stand, and the numbers of `opcodes.py`, `method.py`, `result.py` and
`limits.py`. The files on disk bear that name, so another key is another file.

Numba pastes what a function calls into it and optimises it there anew, so that the same lines are compiled as often as
functions lie above them, and its own work grows faster than the length of a function. A *part* is compiled once and
called by its address.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba import njit
from numba.core import cgutils
from numba.core.typing import Signature
from numba.extending import intrinsic

from gmeql.fitters import method, opcodes, result
from gmeql.fitters.waiting import is_taken_in, uncounted, wait_for
from gmeql.formula import limits

OPTIONS: dict[str, Any] = dict(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
INLINE: dict[str, Any] = dict(inline="always")
"""For what is called from one place: Numba optimises a function anew inside each one that calls it."""


@cache
def sources_key(folder: Path) -> str:
    """Short key of all sources of a folder and of the numbers that compiled code takes in."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for module in (opcodes, method, result, limits):
        numbers = sorted((name, value) for name, value in vars(module).items() if isinstance(value, int | float))
        digest.update(repr(numbers).encode())
    return digest.hexdigest()[:12]


def inner(*signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: `compiled` for what only compiled functions call, so that Python cannot and nothing of it is kept."""
    return compiled(*signature, **options, no_cpython_wrapper=True, cache=False)


@dataclass(eq=False)
class Part:
    """A function that others call by its address, under the name of a symbol."""

    dispatcher: Any
    signature: Signature
    symbol: str
    is_ready: bool = False

    def make_ready(self) -> None:
        """Compile it or load it from disk, and say where it is; where nothing is called, say anything."""
        if self.is_ready:
            return
        address = NOWHERE
        if not _WANTED:
            self.dispatcher.compile(self.signature)
            (overload,) = self.dispatcher.overloads.values()
            address = overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name)
        binding.add_symbol(self.symbol, address)
        self.is_ready = True


NOWHERE = 1
"""Address of the parts in a process that compiles functions one by one and calls none."""
_WANTED: list[Any] = []
"""The function that such a process compiles."""


class Kept(Exception):
    """What was wanted is compiled and on disk: it need not be called."""


def parts_of(folder: Path) -> list[Part]:
    """Parts whose sources stand in a folder, of the modules that were imported."""
    return list(_PARTS[folder])


def compile_alone(function: Any, call: Callable[[], Any]) -> None:
    """Compile a function as `call` would call it, and keep it on disk, without calling it or compiling its parts.

    For processes that do nothing else: afterwards parts cannot be called there.
    """
    _WANTED[:] = [function]
    with suppress(Kept):
        call()


def compiled(*signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: the function compiled by Numba, kept on disk under a name that carries `sources_key`.

    With a signature it is compiled for that alone, before the first function that may call it is. Nothing is compiled or
    loaded by an import.

    Where nothing can be kept (no folder to write to, a full disk) the function is compiled all the same.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        folder = Path(function.__code__.co_filename).parent
        function.__qualname__ = f"{function.__qualname__}_{sources_key(folder)}"
        try:
            dispatcher = njit(**(OPTIONS | options))(function)
        except RuntimeError:  # Numba found no folder for its cache
            dispatcher = njit(**(OPTIONS | options | dict(cache=False)))(function)
        _save_if_possible(dispatcher)
        _in_order(dispatcher, tuple(_PARTS[folder]), tuple(_TYPED[folder]))
        if signature:

            @cache
            def compile_so() -> None:
                dispatcher.compile(*signature)
                dispatcher.disable_compile()

            _TYPED[folder].append(compile_so)
        return dispatcher

    return decorate


_PARTS: dict[Path, list[Part]] = defaultdict(list)
"""By folder, in the order of their sources."""
_TYPED: dict[Path, list[Callable[[], None]]] = defaultdict(list)
"""The same for functions with a signature: what compiles each for it."""


def part(signature: Signature, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: a function that compiled functions of its folder, further down or importing it, call by its address.

    It is compiled, or loaded from disk, before the first of them is; the name under which they look for it carries the
    key of the sources. Python cannot call it, and it must not raise: nobody would look.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        folder = Path(function.__code__.co_filename).parent
        dispatcher = compiled(**options, no_cpython_wrapper=True)(function)
        symbol = f"{function.__module__}.{function.__qualname__}"
        mine = Part(dispatcher, signature, symbol)
        _PARTS[folder].append(mine)

        def typed(_: Any, *arguments: Any) -> Any:
            mine.make_ready()  # who stands in another folder, and is not kept on disk, may call it too
            return signature, write_call

        typed.__name__ = function.__name__
        own = inspect.signature(function)
        first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        typed.__signature__ = own.replace(parameters=[first, *own.parameters.values()])  # type: ignore[attr-defined]

        def write_call(context: Any, builder: Any, _: Signature, values: Any) -> Any:
            convention = context.call_conv
            kind = convention.get_function_type(signature.return_type, signature.args)
            callee = cgutils.get_or_insert_function(builder.module, kind, symbol)
            return convention.call_function(builder, callee, signature.return_type, signature.args, values)[1]

        return intrinsic(typed)

    return decorate


def _in_order(dispatcher: Any, parts: tuple[Part, ...], typed: tuple[Callable[[], None], ...]) -> None:
    """Before a function is taken from disk the parts that it may call are made ready, before it is compiled all else.

    What another process compiles at this moment is waited for: a process that compiles rounds otherwise than one that loads.
    """
    load = dispatcher._cache.load_overload

    def load_overload(signature: Any, context: Any) -> Any:
        with uncounted():
            for mine in parts:
                mine.make_ready()
            found = load(signature, context)
            if found is None and not _WANTED and can_be_kept(dispatcher) and (folder := common_folder()) is not None:
                wait_for(partial(is_on_disk, dispatcher), folder)
                found = load(signature, context)
        if found is None:
            for compile_so in typed:
                compile_so()
        return found

    dispatcher._cache.load_overload = load_overload


def _save_if_possible(dispatcher: Any) -> None:
    """A compiled function that cannot be written to disk still serves this process; Numba alone would raise."""
    save = dispatcher._cache.save_overload

    def save_overload(signature: Any, data: Any) -> None:
        with suppress(OSError):
            save(signature, data)
        if dispatcher in _WANTED:
            raise Kept

    dispatcher._cache.save_overload = save_overload


@cache
def common_folder() -> Path | None:
    """Where whoever compiles says so, whatever folder a function is kept in: where what stands in this file would be kept."""
    path = compiled()(_nothing)._cache.cache_path
    return None if path is None else Path(path)


def _nothing() -> None:
    """Never compiled."""


def are_coming() -> bool:
    """Whether another process compiles kernels at this moment."""
    return (folder := common_folder()) is not None and is_taken_in(folder)


def can_be_kept(function: Any) -> bool:
    """Whether Numba found a folder to keep a compiled function in."""
    return function._cache.cache_path is not None


def is_on_disk(function: Any) -> bool:
    """Whether this very version of a compiled function is kept on disk for this processor, for any arguments.

    Numba passes over what it compiled for another processor, or what another version of it did.
    """
    if not can_be_kept(function):
        return False
    processor = function.targetctx.codegen().magic_tuple()
    kept = function._cache._cache_file._load_index()
    folder = Path(function._cache.cache_path)
    return any(target == processor and (folder / name).exists() for (_, target, _), name in kept.items())
