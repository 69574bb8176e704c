"""How long until something happens: import, `gmeql --help`, the first formula with warm and with cold kernels.

    PYTHONPATH=src python benchmarks/startup.py [--repeats 3] [--json FILE]
    PYTHONPATH=src python benchmarks/startup.py --cold data/braking.csv distance    # what happens when on a new machine
    PYTHONPATH=src python benchmarks/startup.py --kernels       # what each kernel takes to compile, in processor seconds

Every figure is the wall time of a whole new process. Cold means an empty cache of compiled kernels, as after an
installation; the compiled files are then kept for the warm runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FIRST_FORMULA = """
import numpy as np
from gmeql import GMEQLRegressor
X = np.random.default_rng(0).uniform(0, 2, (300, 3))
y = 0.8 * X[:, 0] ** 3 + 0.9 * X[:, 1] ** 2 + 1.2 * X[:, 2]
print(GMEQLRegressor(max_time=60, random_state=0, device="cpu").fit(X, y).expression_)
"""
COLD = """
import sys, time
from gmeql import GMEQLRegressor
from gmeql.tables.read import read
table = read(sys.argv[1])
told = set()
def tell(what, when):
    if what not in told:
        told.add(what)
        print(f"{what:48} {when - float(sys.argv[3]):5.1f} s", flush=True)
def watch(event):
    now = time.time()
    if event.elapsed == 0:
        tell("a first look is shown", now)
        return
    tell("the search runs", now - event.elapsed)
    tell(f"shown: {str(event.best.expression)[:40]}", now)
    if event.candidates:
        tell("islands draw", now)
import numpy as np
columns = {column.name: column.values for column in table.columns if np.isfinite(column.values).all()}
names = [name for name in columns if name != sys.argv[2]]
X, y = np.column_stack([columns[name] for name in names]), columns[sys.argv[2]]
GMEQLRegressor(max_time=10, random_state=0, device="cpu", callbacks=[watch]).fit(X, y)
"""
HELP = "import sys; sys.argv = ['gmeql', '--help']; from gmeql.cli import main; main()"


KERNELS = {
    "fit": "from gmeql.fitters.cpu import compile_kernel; compile_kernel()",
    "draw": "from gmeql.model.fit.kernels import _smallest_search; _smallest_search().draw_once()",
    "look-up": "from gmeql.search.direct.middle.meeting import compile_look_up; compile_look_up()",
}


def processor_seconds(code: str) -> float:
    """Processor time of a new interpreter that runs `code`, less what it takes again with the kernel on disk."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    with tempfile.TemporaryDirectory(prefix="gmeql-kernels-") as cache:
        marks = [spent()]
        for _ in range(2):
            seconds(code, cache)
            marks.append(spent())
    return (marks[1] - marks[0]) - (marks[2] - marks[1])


def seconds(code: str, cache: str | None = None) -> float:
    """Wall time of a new interpreter that runs `code`."""
    environment = dict(os.environ) | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def measure(repeats: int) -> list[dict[str, Any]]:
    def several(what: str, code: str, cache: str | None = None) -> dict[str, Any]:
        times = [seconds(code, cache) for _ in range(repeats)]
        return {"what": what, "seconds": statistics.median(times), "worst": max(times), "runs": repeats}

    with tempfile.TemporaryDirectory(prefix="gmeql-kernels-") as cache:
        cold = seconds(FIRST_FORMULA, cache)
        records = [
            several("an empty interpreter", "pass"),
            several("import gmeql", "import gmeql"),
            several("import the regressor", "from gmeql import GMEQLRegressor"),
            several("gmeql --help", HELP),
            several("first formula (b1), warm kernels", FIRST_FORMULA, cache),
            {"what": "first formula (b1), cold kernels", "seconds": cold, "worst": cold, "runs": 1},
        ]
    return records


def table(records: list[dict[str, Any]]) -> str:
    lines = ["| | seconds, median | worst | runs |", "| --- | --- | --- | --- |"]
    lines += [f"| {r['what']} | {r['seconds']:.2f} | {r['worst']:.2f} | {r['runs']} |" for r in records]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--kernels", action="store_true", help="only what each kernel takes to compile")
    parser.add_argument("--cold", nargs=2, metavar=("TABLE", "TARGET"), help="only what happens when without kernels")
    args = parser.parse_args()
    if args.cold:
        with tempfile.TemporaryDirectory(prefix="gmeql-kernels-", ignore_cleanup_errors=True) as cache:
            command = [sys.executable, "-c", COLD, *args.cold, str(time.time())]
            subprocess.run(command, env=dict(os.environ) | {"NUMBA_CACHE_DIR": cache}, check=True)
        return
    if args.kernels:
        for name, code in KERNELS.items():
            print(f"{name:8} {processor_seconds(code):5.1f} s of processor", flush=True)
        return
    records = measure(args.repeats)
    if args.json:
        facts = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
        args.json.write_text(json.dumps({**facts, "records": records}, indent=1))
    print(table(records))


if __name__ == "__main__":
    main()
