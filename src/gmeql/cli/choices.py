"""The words that an option takes, read off the tables they stand in: in help, in completion, in refusals.

A table stands beside what it chooses from, in a heavy module; `gmeql --help` loads none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from typer.core import TyperCommand

from gmeql.cli.exits import USAGE, Exit, require_memory

CALLABLE_FORMATS = frozenset({"numpy", "jax", "torch"})
"""Formats that are functions in memory, which no terminal can show."""


def formats() -> list[str]:
    """Forms in which a formula can be printed."""
    from gmeql.formula.printing.export import EXPORTS

    return [name for name in EXPORTS if name not in CALLABLE_FORMATS]


def budgets() -> list[str]:
    """Sizes in which the paper's tables and figures can be made again."""
    from gmeql.evaluation.paper.plan import BUDGETS

    return list(BUDGETS)


SOURCES: dict[str, Callable[[], Collection[str]]] = {"format": formats, "budget": budgets}
"""Where the words of options that are no setting of a fit stand."""


def words(option: str) -> list[str]:
    """What `option`, such as "loss", may be."""
    if option in SOURCES:
        return list(SOURCES[option]())
    from gmeql.runs.settings import CHOICES

    return list(CHOICES[option])


def require(option: str, given: str) -> str:
    """`given` if it is one of the words of `option`; else the command ends, naming them."""
    if given not in words(option):
        raise Exit(USAGE, f"gmeql: --{option} {given!r}: unknown; one of {', '.join(words(option))}")
    return given


def complete(option: str) -> Callable[[str], list[str]]:
    """The shell's completion of an option."""

    def completions(incomplete: str) -> list[str]:
        return [word for word in words(option) if word.startswith(incomplete)]

    return completions


class ChoosingCommand(TyperCommand):
    """A command whose options may say `{choices}` in their help; the words are looked up when the help is shown.

    All that it needs is loaded when it runs, and that needs memory.
    """

    def invoke(self, ctx: Any) -> Any:
        require_memory()
        return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            text = getattr(parameter, "help", None) or ""
            if "{choices}" in text and parameter.name is not None:
                *first, last = words(parameter.name)
                listed = f"{', '.join(first)} or {last}" if first else last
                parameter.help = text.replace("{choices}", listed)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)
