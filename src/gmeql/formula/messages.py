"""Values and names inside error messages: short, printable, whatever a hostile file put there."""

from __future__ import annotations

from collections.abc import Iterable


def short(value: object) -> str:
    """A value for an error message: its repr, cut; huge integers and hostile reprs stay out of messages."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "a very large whole number"
    text = ascii(value) if isinstance(value, str | bytes | int | float | bool | type(None)) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def listing(names: Iterable[str], limit: int = 8) -> str:
    names = [ascii(name) if not name.isprintable() else name for name in names]
    shown = ", ".join(name[:40] for name in names[:limit])
    return shown + (f", ... ({len(names)} in all)" if len(names) > limit else "")
