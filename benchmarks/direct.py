"""Direct methods alone: what they see without a single candidate drawn, and what they cost where they see nothing.

    python benchmarks/direct.py CASES.json --candidates 100000 [--methods rational,meeting]
    python benchmarks/direct.py --cost 1000x6,100000x10 --max-time 30
    python benchmarks/direct.py --lost 1000x6,100000x10 --max-time 30 --repeats 3
    python benchmarks/direct.py --shares uniform,heavy,walk,line,diabetes,1000x6 --max-time 20

The first asks them about every case of a file, on its columns and on the smaller tables that its symmetries give, with
the work that a search of so many candidates would grant them. A case is seen where a formula is exact on the training
rows; whether it is the truth is for `gmeql bench` to judge. The second times every method, and the look for symmetries, on
tables that hold nothing to see, each in a process of its own, with the memory that it took. The third counts the candidates
that whole searches draw on such tables with and without direct methods, and looks whether they end in time; it wants an
idle machine. The fourth says what share of the processor time of a whole search on one core each method took, what becomes
of its formulas, and symmetries, and the sum of all, on tables with hardly anything to see; their clock counts processor time,
so that a busy machine gives the same.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes

from gmeql.evaluation.problems.cases import read_cases
from gmeql.formula.nodes import Node
from gmeql.search.clock import Clock
from gmeql.search.config import SearchConfig
from gmeql.search.direct.methods import AT_FIRST, DIRECT_METHODS, GROWING, LATER, ask
from gmeql.search.direct.middle.meeting import compile_look_up
from gmeql.search.search import Search
from gmeql.search.offers import looking, seeing
from gmeql.search.offers.looking import Looking
from gmeql.search.offers.seeing import look_again, look_directly
from gmeql.search.stopping import has_exact_formula

ROWS = 1000
VIEWS = "symmetries"
"""Stands for the look for symmetries among the methods."""


def seen(X: np.ndarray, y: np.ndarray, names: tuple[str, ...], config: SearchConfig) -> tuple[bool, str, float]:
    """Whether a formula is exact on a table after one look, the best formula, and the look's seconds of processor."""
    search = Search(X, y, names=names, config=config)
    search._looking.look_for_symmetries(search._state, Clock.unlimited())
    start = time.process_time()
    look_directly(search._state, Clock.unlimited())
    seconds = time.process_time() - start
    best = search.progress().best.expression
    return has_exact_formula(search._state), str(best), seconds


def cases(path: str, config: SearchConfig) -> Iterator[tuple[str, bool, str, float]]:
    """Name and outcome of every case."""
    for problem in read_cases(path):
        X, y = problem.train(problem.generator(0, "train"), rows=ROWS)
        yield problem.name, *seen(X, y, problem.names, config)


def nothing_to_see(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth law of all columns that no method has a form for, and noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (n_rows, n_columns))
    centres = rng.uniform(0.5, 3.0, (30, n_columns))
    y = sum(
        sign * np.exp(-0.3 * ((X - centre) ** 2).sum(axis=1))
        for sign, centre in zip([1, -1] * 15, centres, strict=True)
    )
    return X, y + 0.05 * np.std(y) * rng.standard_normal(n_rows)


def cost(name: str, n_rows: int, n_columns: int, max_time: float) -> tuple[float, float, float]:
    """Share in seconds, seconds of processor and MB of memory of one method on a table that holds nothing to see."""
    X, y = nothing_to_see(n_rows, n_columns)
    compile_look_up()
    look = {VIEWS: lambda search: search._looking.look_for_symmetries(search._state, search._clock)}.get(
        name, lambda search: _looked(search, name)
    )
    look(_search(*nothing_to_see(300, n_columns), name, 0.1))  # what is compiled and imported is no part of it
    search = _search(X, y, name, max_time)
    search._state.rows.polished  # the rows that all methods look at  # noqa: B018
    before, start = _megabytes(), time.process_time()
    look(search)
    clock = search.config.clock
    share = clock.symmetry_share * max_time if name == VIEWS else search.config.direct_seconds
    if name != VIEWS:
        kinds = {**dict.fromkeys(AT_FIRST, clock.first_share), **dict.fromkeys(LATER, clock.later_share)}
        share *= {**kinds, **dict.fromkeys(GROWING, clock.growing_share)}.get(name, 1.0)
    return share, time.process_time() - start, _megabytes() - before


def _search(X: np.ndarray, y: np.ndarray, name: str, max_time: float) -> Search:
    asked = () if name == VIEWS else (name,)
    search = Search(X, y, config=SearchConfig(max_time=max_time, direct=asked, n_jobs=1, device="cpu"))
    search._clock = Clock.start(search.config)
    return search


def _looked(search: Search, name: str) -> None:
    """Let one method look as often as it is asked in a search."""
    late = name not in AT_FIRST
    for _ in range(len(search.config.clock.later_from) if late else 1):
        (look_again if late else look_directly)(search._state, search._clock)


def drawn(size: str, max_time: float, seed: int, asked: bool) -> tuple[int, float]:
    """Candidates of a whole search with direct methods and symmetries or without, and its seconds."""
    X, y = nothing_to_see(*map(int, size.split("x")))
    direct = None if asked else ()
    config = SearchConfig(max_time=max_time, direct=direct, symmetries=asked, n_jobs=1, device="cpu")
    search = Search(X, y, config=config, seed=seed)
    start = time.perf_counter()
    for _ in search.run():
        pass
    return search.candidates, time.perf_counter() - start


def hardly_anything(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Noise, evenly drawn or of heavy tails, a random walk, one term and noise, measured data, or by its size (1000x6) a
    smooth law that no method has a form for."""
    if kind[0].isdigit():
        return nothing_to_see(*map(int, kind.split("x")))
    rng = np.random.default_rng(1)
    X = rng.uniform(0.5, 3.0, (1000, 6))
    if kind == "diabetes":
        measured = load_diabetes()
        return measured.data, measured.target.astype(float)
    if kind == "walk":
        X[:, 0] = np.arange(1000) / 100.0
        return X, np.cumsum(rng.standard_normal(1000))
    noise = {
        "uniform": lambda: rng.uniform(-1, 1, 1000),
        "heavy": lambda: rng.standard_t(1.5, 1000),
        "line": lambda: 2 * X[:, 0] + rng.standard_normal(1000),
    }
    return X, noise[kind]()


def shares(kind: str, max_time: float) -> dict[str, float]:
    """Share of the processor time of a whole search that each method took, what became of its formulas ("offered"), the
    plans of looks, and symmetries of the data and of the leading formulas: all that islands lose."""
    spent: Counter[str] = Counter()

    def counted(place: Any, name: str, label: str) -> None:
        """Let a function of a module or class count what it takes beyond what others in it do."""
        function = getattr(place, name)

        def called(*given: Any, **options: Any) -> Any:
            began, before = time.thread_time(), spent.total()
            try:
                return function(*given, **options)
            finally:
                spent[label] += time.thread_time() - began - (spent.total() - before)

        setattr(place, name, called)

    def timed(name: str, *given: Any, **options: Any) -> Iterator[Node]:
        proposals = ask(name, *given, **options)
        while True:
            began = time.thread_time()
            root = next(proposals, None)
            spent[name] += time.thread_time() - began
            if root is None:
                return
            yield root

    counted(seeing, "offer_seen", "offered")
    counted(seeing, "_look", "plans")
    counted(Looking, "look_for_symmetries", VIEWS)
    counted(looking, "views_of_leading", "formulas' symmetries")
    counted(Looking, "take_views", "tables")
    seeing.ask, time.perf_counter = timed, time.process_time
    for budget in (1.5, max_time):  # what is compiled and imported is no part of it
        spent.clear()
        search = Search(*hardly_anything(kind), config=SearchConfig(max_time=budget, n_jobs=1, device="cpu"))
        began = time.process_time()
        for _ in search.run():
            pass
    whole = time.process_time() - began
    return {name: seconds / whole for name, seconds in spent.most_common()}


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?")
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument("--methods")
    parser.add_argument("--cost", default="")
    parser.add_argument("--lost", default="")
    parser.add_argument("--shares", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-time", type=float, default=30.0)
    given = parser.parse_args()
    if given.cases:
        asked = None if given.methods is None else tuple(given.methods.split(","))
        outcomes = []
        for name, is_seen, formula, seconds in cases(
            given.cases, SearchConfig(max_candidates=given.candidates, direct=asked, n_jobs=1)
        ):
            outcomes.append(is_seen)
            print("seen" if is_seen else "  --", f"{seconds:5.2f} s", name, formula[:100], flush=True)
        print(f"{sum(outcomes)} of {len(outcomes)} seen")
    alone = ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1)
    with alone:
        for size in filter(None, given.cost.split(",")):
            for name in (VIEWS, *DIRECT_METHODS):
                n_rows, n_columns = map(int, size.split("x"))
                share, seconds, memory = alone.submit(cost, name, n_rows, n_columns, given.max_time).result()
                print(
                    f"{size:>10} {name:>10} {seconds:6.2f} s of {share:.2f} s if asked alone, {memory:5.0f} MB",
                    flush=True,
                )
        for kind in filter(None, given.shares.split(",")):
            found = alone.submit(shares, kind, given.max_time).result()
            each = ", ".join(f"{name} {share:.1%}" for name, share in found.items() if share > 0.003)
            print(f"{kind:>10} {sum(found.values()):.1%} of {given.max_time:g} s: {each}", flush=True)
        for size in filter(None, given.lost.split(",")):
            runs = {
                asked: [
                    alone.submit(drawn, size, given.max_time, seed, asked).result() for seed in range(given.repeats)
                ]
                for asked in (False, True)
            }
            without, with_all = (float(np.median([run[0] for run in runs[asked]])) for asked in (False, True))
            latest = max(seconds for found in runs.values() for _, seconds in found)
            print(
                f"{size:>10} candidates without {without:.0f}, with {with_all:.0f}: {1 - with_all / without:.1%} lost; "
                f"longest search {latest:.1f} s of {given.max_time:g} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
