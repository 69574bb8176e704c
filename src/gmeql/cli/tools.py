"""`gmeql doctor` and `gmeql ui`: what is installed here, and the page in the browser."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gmeql.cli.exits import USAGE, Exit
from gmeql.cli.options import JsonOption

OPTIONAL_PACKAGES = ("pandas", "fastexcel", "openpyxl", "starlette", "uvicorn", "torch")


def doctor(as_json: JsonOption = False) -> None:
    """Print versions, cores, devices and caches: what to send along with a question."""
    from gmeql.cli.present import print_json

    record = doctor_record()
    if as_json:
        print_json(record)
    else:
        print_doctor(record)


def ui(
    folder: Annotated[str, typer.Option("--runs", help="Folder of the runs it shows and makes.")] = "gmeql-runs",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Open a page in the browser: drop a table, watch the search, compare formulas. Only this computer reaches it."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise Exit(USAGE, "gmeql: the page needs two more packages: pip install 'gmeql[web]'") from None
    from gmeql.web import serve

    serve(Path(folder), port=port, open_browser=open_browser)


def doctor_record() -> dict[str, Any]:
    """Versions, cores, devices and caches."""
    from gmeql._version import versions
    from gmeql.fitters.cuda.driver import why_not
    from gmeql.fitters.threads import available_cores

    found = versions(*OPTIONAL_PACKAGES)
    return {
        "versions": {name: text for name, text in found.items() if name not in OPTIONAL_PACKAGES},
        "python": sys.executable,
        "cores": available_cores(),
        "machine": platform.machine(),
        "memory_gib": _memory_gib(),
        "devices": _devices(),
        "accelerator": why_not() or "ready",
        "kernel_cache": _kernel_cache(),
        "optional": {name: found.get(name) for name in OPTIONAL_PACKAGES},
    }


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
    import gmeql

    override = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(override)] if override else list(Path(gmeql.__file__).parent.rglob("__pycache__"))
    files = [file for place in places if place.is_dir() for file in place.rglob("*.nbc")]
    folder = Path(override) if override else Path(gmeql.__file__).parent
    return {"folder": str(folder), "writable": os.access(folder, os.W_OK), "compiled_kernels": len(files)}


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
        "accelerator": record["accelerator"],
        "kernels": cached,
        **{name: found or "not installed" for name, found in record["optional"].items()},
    }
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(str(value)))
    Console(highlight=False).print(table)
