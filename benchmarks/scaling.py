"""How the cost of a fit grows: rows, columns, size of the network, threads; batches on the device where there is one.

    PYTHONPATH=src python benchmarks/scaling.py [--axes rows,columns,network,threads,device] [--candidates 4000]
                                                [--json FILE]

Each point is a fit with a fixed number of candidates in a process of its own, so that its peak memory is its own; the
target is noisy, so that no fit ends early. Beside the time of the whole fit stands that of the search alone. The
exponent is the slope of log(seconds) against log(size) over the last three points: 1 is linear growth, 0 none.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

BASE = {"rows": 1_000, "columns": 5, "width": 0, "threads": 1}
AXES: dict[str, list[dict[str, int]]] = {
    "rows": [{"rows": n} for n in (100, 1_000, 10_000, 100_000, 1_000_000)],
    "columns": [{"columns": n} for n in (1, 3, 10, 30, 100, 300, 1_000)],
    "network": [{"width": n} for n in (1, 2, 4, 8)],
    "threads": [{"threads": n} for n in (1, 2)],
}
LAYER = ("id", "sin", "square", "mul")
"""A network of width w has two layers of w times these, a layer of w sums and products, and its output."""
BATCHES = (1_024, 4_096, 16_384, 65_536, 262_144)


def network(width: int) -> list[list[str]]:
    return [list(LAYER) * width, list(LAYER) * width, ["add", "mul"] * width]


def size_of(axis: str, point: dict[str, int]) -> int:
    """The number an axis is about; of a network its nodes."""
    if axis == "network":
        return sum(len(layer) for layer in network(point["width"]))
    return point[axis]


def measure(point: dict[str, int], candidates: int) -> dict[str, float]:
    """Seconds and memory of one fit; kernels are loaded before the clock starts."""
    from gmeql import GMEQLRegressor

    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (point["rows"], point["columns"]))
    y = 1.7 * X[:, 0] * np.sin(1.3 * X[:, -1]) + 0.3 * rng.standard_normal(len(X))
    common: dict[str, Any] = dict(max_time=None, n_jobs=point["threads"], device="cpu", random_state=0)
    small = rng.uniform(1, 2, (20, 1))
    GMEQLRegressor(**{**common, "max_candidates": 256}).fit(small, small[:, 0] ** 2)
    before = _memory()
    layers = network(point["width"]) if point["width"] else None
    start = time.perf_counter()
    model = GMEQLRegressor(**common, max_candidates=candidates, architecture=layers).fit(X, y)
    return {
        "seconds": time.perf_counter() - start,
        "search_seconds": float(model.seconds_),
        "candidates": int(model.candidates_),
        "memory_mb": _memory(),
        "memory_more_mb": _memory() - before,
        "data_mb": (X.nbytes + y.nbytes) / 2**20,
    }


def _memory() -> float:
    """Peak resident memory of this process in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def measure_axis(axis: str, candidates: int, limit: float) -> list[dict[str, Any]]:
    """The records of an axis; a point that fails or takes longer than the limit is a record with an error."""
    records = []
    for change in AXES[axis]:
        point = {**BASE, **change}
        command = [sys.executable, __file__, "--point", json.dumps(point), "--candidates", str(candidates)]
        record = {"axis": axis, "size": size_of(axis, point), **point, "error": ""}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
            record |= json.loads(done.stdout.splitlines()[-1])
        except (subprocess.SubprocessError, ValueError, IndexError) as error:
            record["error"] = f"{type(error).__name__}: {str(error)[-200:]}"
        records.append(record)
        print(f"{axis} {record['size']}: {record.get('seconds', record['error'])}", file=sys.stderr, flush=True)
    return records


def measure_device() -> list[dict[str, Any]]:
    """Seconds of a batch of fitted candidates on the device; none where there is no accelerator."""
    import jax

    if jax.devices()[0].platform == "cpu":
        return []
    import constant_fit

    records = []
    for batch in BATCHES:
        one = constant_fit.measure_device(batch, "float32", 3)
        record = {"axis": "device", "size": batch, "seconds": one["seconds"], "compile_seconds": one["compile_seconds"]}
        records.append({**record, "memory_mb": _memory(), "error": ""})
    return records


def exponent(records: list[dict[str, Any]]) -> float | None:
    """The slope over the last three points that were measured."""
    points = [(record["size"], record["seconds"]) for record in records if not record["error"]][-3:]
    if len(points) < 2:
        return None
    x, y = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def table(records: list[dict[str, Any]]) -> str:
    lines = ["| axis | size | seconds | search, s | peak memory, MiB | exponent |", "| --- " * 6 + "|"]
    for axis in dict.fromkeys(record["axis"] for record in records):
        mine = [record for record in records if record["axis"] == axis]
        slope = exponent(mine)
        for record in mine:
            last = f"{slope:.2f}" if slope is not None and record is mine[-1] else ""
            if record["error"]:
                lines.append(f"| {axis} | {record['size']:,} | {record['error']} | | | {last} |")
                continue
            search = f"{record['search_seconds']:.2f}" if "search_seconds" in record else ""
            numbers = f"{record['seconds']:.3g} | {search} | {record['memory_mb']:.0f}"
            lines.append(f"| {axis} | {record['size']:,} | {numbers} | {last} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axes", default="rows,columns,network,threads,device")
    parser.add_argument("--candidates", type=int, default=4_000)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a point may take")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--point", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.point:
        print(json.dumps(measure(json.loads(args.point), args.candidates)))
        return
    # Compiling the kernels, once per machine, belongs to no point.
    small = [sys.executable, __file__, "--point", json.dumps(BASE), "--candidates", "256"]
    subprocess.run(small, check=True, stdout=subprocess.DEVNULL)
    records: list[dict[str, Any]] = []
    for axis in args.axes.split(","):
        if axis not in (*AXES, "device"):
            sys.exit(f"axis {axis!r} is unknown; there are {', '.join([*AXES, 'device'])}")
        records += measure_device() if axis == "device" else measure_axis(axis, args.candidates, args.limit)
        if args.json:
            facts = {"machine": platform.machine(), "cores": os.cpu_count(), "candidates": args.candidates}
            slopes = {
                name: exponent([r for r in records if r["axis"] == name]) for name in {r["axis"] for r in records}
            }
            args.json.write_text(json.dumps({**facts, "exponents": slopes, "records": records}, indent=1))
    print(table(records))


if __name__ == "__main__":
    main()
