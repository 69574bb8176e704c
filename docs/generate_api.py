"""Write docs/api.md, the reference of every public name, from signatures and docstrings.

usage: python docs/generate_api.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import gmeql

PAGE = Path(__file__).with_name("api.md")


def summary_of(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "").strip()


def signature_of(name: str, value: Any) -> str:
    try:
        text = f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):  # no signature, such as of a constant
        return name
    text = re.sub(r"<module '(\w+)' from [^>]*>", r"\1", text)  # a module as a default shows where it is installed
    return re.sub(r"(?<=: |> )'([^']*)'", r"\1", text)  # annotations are texts; show them as code


def members_of(cls: type) -> list[tuple[str, Any, bool]]:
    """Public methods and properties that the class itself defines: name, object, whether it is a property."""
    found = []
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            found.append((name, value, True))
        elif isinstance(value, classmethod | staticmethod):
            found.append((name, value.__func__, False))
        elif inspect.isfunction(value):
            found.append((name, value, False))
    return found


def section(name: str) -> str:
    value = getattr(gmeql, name)
    parts = [f"## {name}", f"```\n{signature_of(name, value)}\n```", summary_of(value)]
    if inspect.isclass(value):
        for member, item, is_property in members_of(value):
            if not summary_of(item):
                continue
            head = f"{name}.{member}" if is_property else signature_of(f"{name}.{member}", item)
            parts.append(f"### {name}.{member}\n\n```\n{head}\n```\n\n{summary_of(item)}")
    return "\n\n".join(part for part in parts if part)


def page() -> str:
    names = [name for name in gmeql.__all__ if not name.startswith("_")]
    contents = "\n".join(f"- [{name}](#{name.lower()})" for name in names)
    head = "# API reference\n\nMade from the docstrings by `python docs/generate_api.py`; do not edit.\n\n"
    return head + contents + "\n\n" + "\n\n".join(section(name) for name in names) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
