"""What every test shares: one CPU device unless told otherwise, few threads, reproducible property tests."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# Before anything imports JAX. A machine with an accelerator runs its tests with JAX_PLATFORMS set by hand.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Most of what tests of JAX take is its compiler; what it made is kept for the next run, and for the other test worker.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# Before anything imports SciPy. Without it scikit-learn skips its check of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Test workers run side by side; thread pools inside each of them would only compete.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from thinned import examples_of

# A shell that starts the tests in the background ignores SIGINT for them and all their children; tests of Ctrl-C, here
# and in child processes, need it back.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "gmeql",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples_of(80),
)
settings.load_profile("gmeql")


class Failing(logging.Handler):
    """Makes a failure of what is told to a log: a fault of a look at the data costs no search, but it costs a test."""

    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage()) from (record.exc_info[1] if record.exc_info else None)


for looks in ("gmeql.search.direct.methods", "gmeql.search.offers.looking"):
    logging.getLogger(looks).addHandler(Failing(logging.WARNING))


def pytest_configure(config: pytest.Config) -> None:
    """Kernels are compiled once, before test workers start; each of them would do it for itself at the same time."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        from gmeql.model.fit.kernels import keep_kernels

        keep_kernels()


LONGEST = (
    "test_recorded_fronts.py",
    "test_docs.py",
    "web/test_browser.py",
    "estimator/test_regressor.py",
    "differential/motion/test_dynamics.py",
    "report/test_in_browser.py",
    "estimator/test_sklearn.py",
    "search/test_search.py",
    "paper/test_search.py",
    "test_hostile.py",
)
"""Files that take longest. They come first, so that test workers, which take a file each, end at about the same time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; all others, and the tests of a file, in their order."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish(session: pytest.Session) -> None:
    """What collecting has made stays to the end; the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def fronts_can_be_stored() -> Iterator[None]:
    """Every front that any test's estimator keeps must come back from plain data as it was, figure by figure."""
    from gmeql.estimator import GMEQLRegressor
    from gmeql.model.pareto.front import Front

    keep = GMEQLRegressor._keep_fronts

    def keep_stored(model: GMEQLRegressor, fronts: Sequence[Front], selected: Sequence[int]) -> None:
        for front in fronts:
            assert list(Front.from_dict(front.to_dict())) == list(front)
        keep(model, fronts, selected)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GMEQLRegressor, "_keep_fronts", keep_stored)
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed, fresh for each test."""
    return np.random.default_rng(20210526)


@pytest.fixture(scope="module")
def compiled_quickly() -> Iterator[None]:
    """JAX without what its compiler does only to make programs fast: for tests whose programs run for a moment."""
    import jax
    from jax._src import compiler

    options_of = compiler.get_compile_options

    def quick_options(*args: Any, **options: Any) -> Any:
        made = options_of(*args, **options)
        made.env_option_overrides = [*made.env_option_overrides, ("xla_cpu_use_fusion_emitters", False)]
        return made

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    with pytest.MonkeyPatch.context() as patch:
        if jax.__version__.startswith("0.10."):  # fused loops in their newer form take half of the time
            patch.setattr(compiler, "get_compile_options", quick_options)
        yield
    jax.config.update("jax_disable_most_optimizations", before)
