"""`gmeql alternatives`: formulas beside the chosen one, with their shares of the evidence."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gmeql.cli.exits import USAGE, Exit
from gmeql.cli.model import ModelArgument, load
from gmeql.cli.options import JsonOption


def alternatives(
    model: ModelArgument,
    n: Annotated[int, typer.Option("-n", min=1, help="How many at most.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """List distinct formulas that describe the data nearly as well as the best, with their shares of the evidence.

    A run folder knows those that were on the front for a while; a model file alone knows its front.
    """
    from gmeql.cli.present import print_json

    listed = Path(model) / "alternatives.csv"
    if listed.is_file():
        with listed.open(encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))[:n]
    else:
        found = _of_model(model, n)
    if as_json:
        return print_json(
            [{key: text if key == "formula" else float(text) for key, text in row.items()} for row in found]
        )
    return _print(found)


def _of_model(model: str, n: int) -> list[dict[str, Any]]:
    from gmeql.model.targets import as_list
    from gmeql.runs.records import alternative_records

    loaded = load(model)
    fronts = as_list(loaded.front_)
    if len(fronts) > 1:
        raise Exit(USAGE, f"gmeql: {model}: holds formulas of {len(fronts)} targets; alternatives are listed for one")
    try:
        return alternative_records(fronts[0], n)
    except ValueError as error:
        raise Exit(USAGE, f"gmeql: {model}: {error}") from None


def _print(found: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from gmeql.formula.printing.notation import four_digits

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("evidence", "complexity", "loss", "formula"):
        table.add_column(name, justify="left" if name == "formula" else "right", overflow="fold")
    for row in found:
        numbers = f"{float(row['weight']):.1%}", str(int(float(row["complexity"]))), four_digits(float(row["loss"]))
        table.add_row(*map(Text, (*numbers, str(row["formula"]))))
    Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 200).print(table)
