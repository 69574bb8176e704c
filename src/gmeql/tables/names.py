"""Column names as formulas and messages can use them: one line, not empty, each different."""

from __future__ import annotations

from collections.abc import Sequence

from gmeql.tables.cells import Note, clean_cell, one_line, show


def tidy_names(raw: Sequence[str | None]) -> tuple[tuple[str, ...], frozenset[str], list[Note]]:
    """Names that are one line, not empty and different, what was given twice, and notes of the changes.

    >>> tidy_names(["a", "", "a"])[0]
    ('a', 'column2', 'a_2')
    """
    names: list[str] = []
    taken = {one_line(clean_cell(name)) for name in raw}
    empty = changed = 0
    duplicated: list[str] = []
    seen: set[str] = set()
    for i, cell in enumerate(raw, 1):
        name = one_line(clean_cell(cell), 120)
        if name != clean_cell(cell):
            changed += 1
        if not name:
            empty += 1
            name = _free(f"column{i}", taken)
        elif name in seen:
            duplicated.append(name)
            name = _free(f"{name}_2", taken)
        taken.add(name)
        seen.add(name)
        names.append(name)
    notes = []
    if empty:
        notes.append(
            Note(
                "empty_names",
                f"{empty} column{'s' * (empty > 1)} without a name: called by position, as in column1",
                empty,
            )
        )
    if duplicated:
        shown = ", ".join(show(name) for name in list(dict.fromkeys(duplicated))[:3])
        notes.append(
            Note(
                "duplicate_names",
                f"names given twice ({shown}): the later ones carry a number, as in x_2",
                len(duplicated),
            )
        )
    if changed:
        notes.append(
            Note(
                "changed_names",
                f"{changed} name{'s' * (changed > 1)} shortened or freed of control characters",
                changed,
            )
        )
    return tuple(names), frozenset(duplicated), notes


def _free(name: str, taken: set[str]) -> str:
    stem, number = (name[:-2], 2) if name.endswith("_2") else (name, 1)
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name
