"""Values, names and formulas inside messages: short, printable, whatever a hostile file put there."""

from __future__ import annotations

from collections.abc import Iterable


def short(value: object) -> str:
    """A value for an error message: its repr, cut; huge integers and hostile reprs stay out of messages."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "a very large whole number"
    text = ascii(value) if isinstance(value, str | bytes | int | float | bool | type(None)) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def shortened(text: str, limit: int) -> str:
    """A formula or a name in at most `limit` letters, cut at a gap between its parts where it can be:
    half a number is another number.

    >>> shortened("2.5*speed**2 + 0.54062*grip", 22)
    '2.5*speed**2 + …'
    """
    if len(text) <= limit:
        return text
    gaps = [i for i, letter in enumerate(text[: limit - 1]) if letter == " " and text.count("`", 0, i) % 2 == 0]
    return f"{text[: gaps[-1]]} …" if gaps and gaps[-1] > limit // 2 else text[: limit - 1] + "…"


def listing(names: Iterable[str], limit: int = 8) -> str:
    """Names in a row, the first of many."""
    names = [ascii(name) if not name.isprintable() else name for name in names]
    shown = ", ".join(name[:40] for name in names[:limit])
    return shown + (f", ... ({len(names)} in all)" if len(names) > limit else "")
