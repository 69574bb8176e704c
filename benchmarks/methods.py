"""What each direct method, and the look for symmetries, is worth: formulas that it made exact, and those lost without it.

    python benchmarks/methods.py run CASES.json ... --out methods.jsonl
    python benchmarks/methods.py run CASES.json ... --together sections,roots --out together.jsonl
    python benchmarks/methods.py report methods.jsonl

Every formula is searched for once as the search is, and it is noted who was the first to see it. Then it is searched for
again without that method, and without symmetries where smaller tables were found. Where a method saw nothing exact,
leaving it out is taken to change nothing, so that a few searches tell what hundreds would. But a method may see part of a
formula, which islands then end, or see what another sees as well: with --together every formula that is solved is searched
for without all of the named methods, and where that loses it without each of them. The budget is candidates, which the work
of direct methods is counted in, so the machine does not matter. Finished searches are skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

ISLANDS = "islands"
"""Who saw it where no direct method did."""
SYMMETRIES = "symmetries"
Cell = tuple[str, str, int, str]
"""Case file, problem, seed, and what is left out: nothing, a method, several (with commas), or symmetries."""


def searched(cell: Cell, candidates: int, rows: int) -> dict[str, Any]:
    """One search: solved or not, who saw the exact formula first, and over how many tables was searched."""
    from gmeql.evaluation.problems import judge, load_suite
    from gmeql.model.fit.preparation import prepare
    from gmeql.search.config import SearchConfig
    from gmeql.search.direct.methods import DIRECT_METHODS
    from gmeql.search.search import Search

    suite, problem_name, seed, left_out = cell
    not_asked = left_out.split(",")
    (problem,) = load_suite(suite, [problem_name])
    data = prepare(*problem.sample(problem.generator(seed, "train"), rows), names=problem.names)
    config = SearchConfig(
        max_candidates=candidates, n_jobs=1, device="cpu", symmetries=left_out != SYMMETRIES,
        direct=tuple(name for name in DIRECT_METHODS if name not in not_asked),
    )  # fmt: skip
    started = time.perf_counter()
    with noted() as seen:
        search = Search(data.X, data.y, names=data.names, config=config, seed=seed, **data.row_options)
        for progress in search.run():
            pass
    best = data.restore_expression(progress.best.expression)
    return {
        "suite": suite, "problem": problem_name, "seed": seed, "left_out": left_out,
        "solved": bool(judge(best, problem).solved), "seen_by": seen.by if progress.reason == "exact" else "",
        "tables": len(search._state.portfolio.tables), "candidates": progress.candidates,
        "seconds": time.perf_counter() - started, "expression": str(best),
    }  # fmt: skip


class noted:
    """Notes which method's formula made the front exact; islands where none did."""

    def __init__(self) -> None:
        self.by, self._asked = ISLANDS, ""

    def __enter__(self) -> noted:
        from gmeql.search.offers import seeing
        from gmeql.search.stopping import has_exact_formula

        self._kept = ask, offer_seen = seeing.ask, seeing.offer_seen

        def asked(name: str, *arguments: Any, **options: Any) -> Iterator[Any]:
            for root in ask(name, *arguments, **options):
                self._asked = name
                yield root

        def offered(state: Any, *arguments: Any, **options: Any) -> None:
            was_exact = has_exact_formula(state)
            offer_seen(state, *arguments, **options)
            if not was_exact and has_exact_formula(state):
                self.by = self._asked

        seeing.ask, seeing.offer_seen = asked, offered
        return self

    def __exit__(self, *_: object) -> None:
        from gmeql.search.offers import seeing

        seeing.ask, seeing.offer_seen = self._kept


def without(record: dict[str, Any], together: str = "") -> list[Cell]:
    """What is searched for again: without the method that saw the formula, and without symmetries where there were any; or
    without some methods together, and without each of them what they lose."""
    if record["left_out"]:
        left_out = together.split(",") if record["left_out"] == together and not record["solved"] else []
    elif not record["solved"]:
        left_out = []
    elif together:
        left_out = [together]
    else:
        left_out = [record["seen_by"]] if record["seen_by"] not in ("", ISLANDS) else []
        left_out += [SYMMETRIES] if record["tables"] > 1 else []
    return [(record["suite"], record["problem"], record["seed"], name) for name in left_out]


def run(arguments: argparse.Namespace) -> None:
    from gmeql.evaluation.problems import load_suite
    from gmeql.search.direct.methods import DIRECT_METHODS

    unknown = [name for name in arguments.together.split(",") if name not in ("", *DIRECT_METHODS)]
    if unknown:
        sys.exit(f"no direct method is called {unknown[0]!r}; there are {', '.join(DIRECT_METHODS)}")
    out = Path(arguments.out)
    records = read(out)
    names = [(suite, p.name) for suite in arguments.cases for p in load_suite(suite) if p.formula is not None]
    first = [(*name, seed, "") for seed in range(arguments.seeds) for name in names]
    done = {cell_of(record) for record in records}
    waiting = [cell for record in records for cell in without(record, arguments.together) if cell not in done]
    waiting += [cell for cell in first if cell not in done]
    deadline = time.monotonic() + arguments.limit
    with ProcessPoolExecutor(arguments.workers) as pool, out.open("a") as file:
        running: set[Any] = set()
        while waiting or running:
            while waiting and len(running) < arguments.workers and time.monotonic() < deadline:
                running.add(pool.submit(searched, waiting.pop(0), arguments.candidates, arguments.rows))
            if not running:
                break
            finished = next(as_completed(running))
            running.remove(finished)
            record = finished.result()
            waiting += without(record, arguments.together)
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"\r{len(records)} searches, {len(waiting)} waiting", end="", file=sys.stderr)
    print(file=sys.stderr)
    report(records)


def cell_of(record: dict[str, Any]) -> Cell:
    return record["suite"], record["problem"], record["seed"], record["left_out"]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(records: Iterable[dict[str, Any]]) -> None:
    """How many formulas each method saw first, and how many of these are solved and lost without it."""
    from gmeql.search.direct.methods import DIRECT_METHODS

    records = list(records)
    base = [record for record in records if not record["left_out"]]
    seen = Counter(record["seen_by"] for record in base if record["solved"])
    again = [record for record in records if record["left_out"]]
    lost = Counter(record["left_out"] for record in again if not record["solved"])
    count = Counter(record["left_out"] for record in again)
    print(f"{sum(record['solved'] for record in base)} of {len(base)} solved\n")
    print("| seen first by | formulas | searched for without it | lost |\n| --- | --- | --- | --- |")
    together = [name for name in count if "," in name]
    for name in sorted([*together, *DIRECT_METHODS, ISLANDS, SYMMETRIES], key=lambda name: (-lost[name], -seen[name])):
        formulas = "" if name == SYMMETRIES else seen[name]
        print(f"| {name} | {formulas} | {count[name] or ''} | {lost[name] if count[name] else ''} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run", help="search for what --out does not hold, then report")
    one.add_argument("cases", nargs="+", help="case files, or 'paper'")
    one.add_argument("--seeds", type=int, default=1)
    one.add_argument("--candidates", type=int, default=30_000)
    one.add_argument("--rows", type=int, default=1_000, help="training rows drawn from a formula")
    one.add_argument("--together", default="", help="methods to leave out together, with commas between them")
    one.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    one.add_argument("--limit", type=float, default=float("inf"), help="seconds after which no search starts")
    one.add_argument("--out", default="methods.jsonl")
    one.set_defaults(run=run)
    one = commands.add_parser("report", help="the table of records")
    one.add_argument("out")
    one.set_defaults(run=lambda arguments: report(read(Path(arguments.out))))
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
