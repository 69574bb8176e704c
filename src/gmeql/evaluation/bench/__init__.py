"""Benchmarks: every problem of a suite, several seeds each, with one method and one budget.

One record per problem and seed goes to a file as it is finished, so an interrupted benchmark goes on where it stopped.
By default one fit runs at a time, because a fit uses every core; `jobs` runs several in worker processes, with fewer
threads each. Before the clock starts, each process fits a small table once, so that loading libraries and compiled
kernels is not counted as search time.

>>> records = run_suite("paper", problems=["b1"], seeds=1, max_time=20)      # doctest: +SKIP
>>> summarise(records)[0].solved                                             # doctest: +SKIP
1
"""

from __future__ import annotations

from gmeql.evaluation.bench.cells import Factory, default_model, run_cell
from gmeql.evaluation.bench.records import BenchConfig, BenchRecord, RecordFile, read_records
from gmeql.evaluation.bench.run import run_suite
from gmeql.evaluation.bench.summary import Summary, summarise, table

__all__ = [
    "BenchConfig",
    "BenchRecord",
    "Factory",
    "RecordFile",
    "Summary",
    "default_model",
    "read_records",
    "run_cell",
    "run_suite",
    "summarise",
    "table",
]
