"""Peers and gmeql side by side in one run, and the table and figures of its records.

    python benchmarks/peers/run.py install                                     # every peer, an environment each
    python benchmarks/peers/run.py run --suite paper:20 --seeds 3 --out out/peers.jsonl
    python benchmarks/peers/run.py run --suite CASES.json:60:0,0.01,0.1 --suite blackbox:60 --out out/peers.jsonl
    python benchmarks/peers/run.py report out/peers.jsonl --figures docs/images

A suite is NAME[:SECONDS[:NOISES[:SYSTEMS[:SEEDS]]]]; NAME is `paper`, `blackbox` or a cases file. A later run with the
same --out goes on where an earlier one ended. docs/benchmarks.md says what the numbers mean.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

import cells
import execute
from systems import SYSTEMS, install, interpreter

import report


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    one = commands.add_parser("install", help="make the environments of the peers")
    one.add_argument("--systems", default=",".join(SYSTEMS))
    one.add_argument("--upgrade", action="store_true", help="make them anew")

    one = commands.add_parser("run", help="run the cells that --out does not hold")
    one.add_argument(
        "--suite", action="append", required=True, help="NAME[:SECONDS[:NOISES[:SYSTEMS[:SEEDS]]]], repeatable"
    )
    one.add_argument("--out", required=True, help="file of records (JSON lines)")
    one.add_argument("--systems", default=",".join(SYSTEMS))
    one.add_argument("--problems", help="only these, comma-separated")
    one.add_argument("--seeds", type=int, default=1)
    one.add_argument("--rows", type=int, default=1_000, help="training rows drawn from a formula, at most")
    one.add_argument("--threads", type=int, default=1, help="cores of one run")
    one.add_argument("--workers", type=int, help="runs at a time (default: all cores / threads)")
    one.add_argument("--seconds", type=float, help="start no run that might not end within this time")
    one.add_argument("--bundle", type=Path, help="folder with the peers' packages, instead of environments")
    one.add_argument("--retry", action="store_true", help="run cells that ended with an error again")

    one = commands.add_parser("report", help="the table and figures of records")
    one.add_argument("records", nargs="+")
    one.add_argument("--figures", type=Path, help="folder for the two figures")
    one.add_argument("--table", type=Path, help="file for the table (default: stdout)")
    one.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="comparisons at a time")

    one = commands.add_parser("blackbox", help="write the black-box tables as a cases file")
    one.add_argument("--out", required=True, type=Path)

    args = parser.parse_args(arguments)
    {"install": _install, "run": _run, "report": _report, "blackbox": _blackbox}[args.command](args)


def _chosen(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in SYSTEMS:
            sys.exit(f"system {name!r} is unknown; there are {', '.join(SYSTEMS)}")
    return names


def _install(args: argparse.Namespace) -> None:
    for name in _chosen(args.systems):
        print(
            f"{name}: {SYSTEMS[name].environment if SYSTEMS[name].packages else 'the running interpreter'}", flush=True
        )
        install(SYSTEMS[name], upgrade=args.upgrade)


def _run(args: argparse.Namespace) -> None:
    deadline = None if args.seconds is None else time.monotonic() + args.seconds
    work, used = [], set()
    for text in args.suite:
        name, seconds, noises, systems, seeds = (text.split(":") + [""] * 4)[:5]
        chosen = _chosen(systems or args.systems)
        used |= set(chosen)
        work += cells.cells(
            name,
            systems=chosen,
            max_time=float(seconds or 60),
            noises=[float(noise) for noise in (noises or "0").split(",")],
            seeds=range(int(seeds or args.seeds)),
            problems=args.problems.split(",") if args.problems else None,
            threads=args.threads,
            rows=args.rows,
        )
    available = (
        sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    )
    groups = [available[i : i + args.threads] for i in range(0, len(available), args.threads)]
    groups = [group for group in groups if len(group) == args.threads][: args.workers]
    if not groups:
        sys.exit(f"--threads {args.threads} is more than the {len(available)} cores there are")
    interpreters = {name: interpreter(SYSTEMS[name], bundle=args.bundle) for name in used}
    with ThreadPoolExecutor(1) as beside:
        # gmeql compiles its kernels once, while peers run; its cells wait for that.
        compiled = beside.submit(execute.warm_up, interpreters, SYSTEMS["gmeql"].runner, args.threads)
        execute.run(
            work,
            interpreters,
            args.out,
            runners={name: SYSTEMS[name].runner for name in used},
            cores=groups,
            deadline=deadline,
            retry=args.retry,
            ready={"gmeql": lambda: wait([compiled])},
            show=lambda line: print(line, flush=True),
        )
    if compiled.exception():
        print(f"compiling gmeql's kernels failed: {compiled.exception()}", file=sys.stderr)


def _report(args: argparse.Namespace) -> None:
    # Of a cell that was run again, the last record counts.
    latest = {execute.key(record): record for path in args.records for record in execute.read(path)}
    records = list(latest.values())
    scored = report.scored(records, Path(args.records[0]).with_suffix(".scores.jsonl"), workers=args.workers)
    text = report.markdown(scored)
    if args.table:
        args.table.write_text(text, encoding="utf-8")
    else:
        print(text)
    if args.figures:
        for path in report.figures(scored, args.figures):
            print(path, file=sys.stderr)


def _blackbox(args: argparse.Namespace) -> None:
    args.out.write_text(json.dumps(cells.black_box_cases()), encoding="utf-8")


if __name__ == "__main__":
    main()
