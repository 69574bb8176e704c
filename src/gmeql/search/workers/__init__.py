"""Islands on other processes and machines: steps of islands, carried by the joblib backend that is active.

`with joblib.parallel_config("ray")` (or "dask", "loky") around a fit says who carries; without it there is no pool and
the search stays on the threads of its own process. The backend is asked for places to work, not for `Parallel`: there
one dead worker fails the whole call, here it costs the assignment it held, which goes to another.

An assignment is one island and a number of steps. Each worker keeps what it was sent: the arrays that islands are fitted
to, by their content, and the table of tried structures, of which later messages bring only the news. The pool keeps the
list of what each worker has; a worker that turns out to have less, because its process is a new one, is sent everything
again.
"""

from gmeql.search.workers.pool import WorkerError, WorkerPool, find_pool

Crew = WorkerPool
find_crew = find_pool

__all__ = ["Crew", "WorkerError", "WorkerPool", "find_crew", "find_pool"]
