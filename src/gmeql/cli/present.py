"""What the command line shows at the end: the formula large and clear, the front, how sure, where the report lies."""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from gmeql.report.judgement import figures, judge
from gmeql.runs.folder import member_record, versions

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gmeql.model.front import Front
    from gmeql.runs.execute import Outcome
    from gmeql.runs.folder import Run
    from gmeql.tables.read import Training

MAX_SHOWN = 15
MAX_PRETTY_NODES = 60  # a larger formula is clearer on one line than drawn over many


def print_json(record: Any) -> None:
    """One JSON object on stdout."""
    print(json.dumps(record, ensure_ascii=False, allow_nan=False))


def fit_record(run: Run, training: Training, outcome: Outcome) -> dict[str, Any]:
    """The outcome of a fit for programs."""
    model = outcome.model
    assert model is not None
    found = figures(model.expression_(training.X), training.y, training.weights)
    return {
        "target": training.target,
        **model_record(model, None),
        "r2": found.r2 if np.isfinite(found.r2) else None,
        "rmse": found.rmse if np.isfinite(found.rmse) else None,
        "judgement": judge(model.front_, model.selected_index_, training),
        "rows": len(training.y),
        "columns": list(training.names),
        "notes": [note.message for note in training.notes],
        "state": outcome.state,
        "reason": outcome.reason,
        "seconds": model.seconds_,
        "candidates": model.candidates_,
        "run": str(run.folder),
        "model": str(run.model_path),
        "report": str(outcome.report) if outcome.report else None,
    }


def model_record(model: Any, index: int | None) -> dict[str, Any]:
    """A model's formula and front for programs."""
    index = model.selected_index_ if index is None else index
    expression = model.front_[index].expression
    return {
        "formula": str(expression),
        "exact": expression.exact(),
        "latex": expression.latex(),
        "loss": model.front_[index].loss,
        "complexity": model.front_[index].complexity,
        "index": index,
        "front": [member_record(member) for member in model.front_],
    }


# ------------------------------------------------------------------------------------------------- for people


def print_result(run: Run, training: Training, outcome: Outcome, *, file: TextIO) -> None:
    """The end of a fit: formula, front, judgement, where things are."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.panel import Panel
    from rich.text import Text

    model = outcome.model
    assert model is not None
    console = Console(file=file, highlight=False)
    console.print()
    console.print(
        Panel(large_formula(model.expression_, training.target, console.width - 8), expand=False, padding=(1, 3))
    )
    sentences = judge(model.front_, model.selected_index_, training)
    console.print(Padding(Text(" ".join(sentences)), (0, 1)))
    console.print()
    console.print(front_table(model.front_, model.selected_index_))
    console.print()
    reason = f"{outcome.reason}: " if outcome.reason else ""
    console.print(Text(f"{reason}{model.candidates_:,} candidates in {model.seconds_:.1f} s", style="dim"))
    console.print(Text(f"model   {run.model_path}"), soft_wrap=True)
    if outcome.report is not None:
        console.print(Text(f"report  {outcome.report}"), soft_wrap=True)


def print_front(front: Front, selected: int, *, file: TextIO) -> None:
    """The front as a table, the chosen formula marked."""
    from rich.console import Console

    Console(file=file, highlight=False, width=None if file.isatty() else 200).print(front_table(front, selected))


def front_table(front: Front, selected: int) -> RenderableType:
    """The front as a rich table; columns' names are shown as text, whatever they hold."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, justify in (
        ("", "left"),
        ("index", "right"),
        ("complexity", "right"),
        ("loss", "right"),
        ("formula", "left"),
    ):
        table.add_column(name, justify=justify, overflow="fold" if name == "formula" else "ellipsis")  # type: ignore[arg-type]
    members = list(front)
    shown = members if len(members) <= MAX_SHOWN else [*members[: MAX_SHOWN - 1], members[-1]]
    if selected < len(members) and members[selected] not in shown:
        shown.insert(-1, members[selected])
    for member in shown:
        chosen = member.index == selected
        style = "bold green" if chosen else ""
        table.add_row(
            Text("▶" if chosen else " ", style=style),
            Text(str(member.index), style=style),
            Text(str(member.complexity), style=style),
            Text(f"{member.loss:.4g}", style=style),
            Text(str(member), style=style),
        )
    return table


def large_formula(expression: Any, target: str, width: int) -> RenderableType:
    """The formula drawn over several lines, as on paper, where that fits; else on one line."""
    from rich.text import Text

    from gmeql.formula.printing.notation import display_names

    name = display_names([target])[0]
    flat = Text(f"{name} = {expression}", style="bold")
    if expression.size > MAX_PRETTY_NODES:
        return flat
    import sympy

    drawn = sympy.pretty(
        sympy.Eq(sympy.Symbol(name), expression.sympy(rounded=True), evaluate=False), use_unicode=True, wrap_line=False
    )
    if max(map(len, drawn.split("\n"))) > width:
        return flat
    return Text(drawn, style="bold", no_wrap=True)


# ------------------------------------------------------------------------------------------------- doctor and bench


def doctor_record() -> dict[str, Any]:
    """Versions, cores, devices and caches."""
    record: dict[str, Any] = {
        "versions": versions(),
        "python": sys.executable,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "machine": platform.machine(),
        "memory_gib": _memory_gib(),
        "devices": _devices(),
        "kernel_cache": _kernel_cache(),
        "optional": {
            name: _installed(name) for name in ("pandas", "fastexcel", "openpyxl", "starlette", "uvicorn", "torch")
        },
    }
    return record


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _devices() -> list[str]:
    try:
        import jax

        return [f"{device.platform}: {device.device_kind}" for device in jax.devices()]
    except (ImportError, RuntimeError) as error:
        return [f"JAX does not start: {' '.join(str(error).split())[:200]}"]


def _kernel_cache() -> dict[str, Any]:
    """Where Numba keeps compiled kernels, and whether there are any: the first fit after an update compiles them."""
    from pathlib import Path

    import gmeql

    override = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(override)] if override else list(Path(gmeql.__file__).parent.rglob("__pycache__"))
    files = [file for place in places if place.is_dir() for file in place.rglob("*.nbc")]
    folder = Path(override) if override else Path(gmeql.__file__).parent
    return {"folder": str(folder), "writable": os.access(folder, os.W_OK), "compiled_kernels": len(files)}


def _installed(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def print_doctor(record: dict[str, Any]) -> None:
    """The doctor's findings as a table on stdout."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cache = record["kernel_cache"]
    cached = f"{cache['compiled_kernels']} compiled in {cache['folder']}" + (
        "" if cache["writable"] else " (not writable)"
    )
    if not cache["compiled_kernels"]:
        cached += "; the first fit compiles them, about 15 s once"
    rows = {
        **record["versions"],
        "interpreter": record["python"],
        "cores": f"{record['cores']} ({record['machine']}), {record['memory_gib']} GiB memory",
        "devices": ", ".join(record["devices"]),
        "kernels": cached,
        **{name: found or "not installed" for name, found in record["optional"].items()},
    }
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(str(value)))
    Console(highlight=False).print(table)


def run_bench(suite: str, problems: str | None, path: str | None, settings: dict[str, Any]) -> int:
    """Run a benchmark with a live table on stderr; records to `path`, a summary to stdout. Returns the exit code.

    `settings` are those of `bench.run_suite`.
    """
    from rich.console import Console

    from gmeql.evaluation import bench
    from gmeql.runs.settings import split_names

    try:
        records = bench.run_suite(
            suite,
            problems=list(split_names(problems)) if problems else None,
            path=path,
            show=True,
            **settings,
        )
    except ValueError as error:
        print(f"gmeql: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(bench.table(records))
    return 0
