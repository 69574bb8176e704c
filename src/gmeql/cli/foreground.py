"""A fit in the terminal's foreground: live progress, and signals answered within two seconds with results saved."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

from gmeql.model.progress import ProgressDisplay
from gmeql.runs.execute import RunOutcome, Stop, execute, save_emergency

if TYPE_CHECKING:
    from gmeql.runs.folder import Run
    from gmeql.runs.settings import FitSettings
    from gmeql.tables.read import Training

DEADLINE_SECONDS = 1.7  # after a signal; two seconds are promised, and a busy machine is late
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 3.0  # without a sign of life for this long, say why
_leaving = threading.Lock()


def run_interruptibly(
    run: Run, training: Training, settings: FitSettings, *, quiet: bool
) -> tuple[RunOutcome | None, int]:
    """Execute the run in a thread while this one watches for SIGINT and SIGTERM.

    The search's thread may be held by a compiler or a long step; this one answers signals at once. Returns the outcome
    and 0, or the exit code 128 + signal. When that takes too long after a signal, what the last progress event held is
    saved and the process ends by itself.
    """
    stop = Stop()
    result: list[RunOutcome] = []
    failure: list[BaseException] = []
    latest: list[Any] = []
    budget = f"of {settings.max_time:g} s" if settings.max_time is not None else ""
    display = (
        nullcontext()
        if quiet
        else ProgressDisplay(title=training.target, budget=budget, seconds=settings.max_time, transient=True)
    )

    def work(shown: ProgressDisplay | None) -> None:
        def watch(progress: Any) -> None:
            latest[:] = [progress]
            if shown is not None:
                shown.update(progress)

        try:
            result.append(execute(run, training=training, settings=settings, on_progress=watch, stop=stop))
        except BaseException as error:  # noqa: BLE001  handed to the main thread, which raises it
            failure.append(error)

    def too_late(code: int) -> None:
        saved = run.description()["state"] in ("stopped", "done")
        saved = saved or (bool(latest) and save_emergency(run, training, settings, latest[0]))
        what = f"what was found is saved in {run.folder}" if saved else "no formula was found yet"
        leave(code, f"interrupted: {what}; go on with: gmeql resume {run.folder}")

    threading.Thread(target=_preload, name="gmeql-preload", daemon=True).start()
    with _signals(stop, too_late) as received, display as shown:
        worker = threading.Thread(target=work, args=(shown,), name="gmeql-fit", daemon=True)
        worker.start()
        started, told = time.monotonic(), quiet
        while worker.is_alive():
            worker.join(POLL_SECONDS)
            if not told and not latest and time.monotonic() - started > PATIENCE_SECONDS:
                told = True
                print("getting ready (the first fit after an installation compiles its kernels)", file=sys.stderr)
    if failure and not (received and isinstance(failure[0], KeyboardInterrupt)):
        raise failure[0]
    return (result[0] if result else None), (128 + received[0] if received else 0)


def leave(code: int, message: str) -> NoReturn:
    """Say `message` and end the process now, whatever its threads do; the first to call this wins."""
    if not _leaving.acquire(blocking=False):
        time.sleep(60)
    print(message, file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(code)


def _preload() -> None:
    """Load what the end of a run needs while the search goes on, so that an interrupt need not wait for it."""
    import sympy

    from gmeql.report import content, environment

    environment().get_template("report.html.j2")
    content.safe_json({})
    sympy.pretty(sympy.Symbol("x") ** 2 / 3)


@contextmanager
def _signals(stop: threading.Event, too_late: Callable[[int], None]) -> Iterator[list[int]]:
    """The first SIGINT or SIGTERM sets `stop` and starts the clock; a second one ends the process at once."""
    received: list[int] = []

    def handle(number: int, frame: Any) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        stop.set()
        clock = threading.Timer(DEADLINE_SECONDS, too_late, args=(128 + number,))
        clock.daemon = True
        clock.start()

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
