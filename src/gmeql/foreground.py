"""A fit in the terminal's foreground: live progress, and signals answered within two seconds with results saved."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from gmeql.progress import ProgressDisplay
from gmeql.runs import Outcome, Run, execute, save_emergency

if TYPE_CHECKING:
    from gmeql.config import FitSettings
    from gmeql.tables import Training

GRACE_SECONDS = 1.4  # after a signal the search may take this long to end by itself; two seconds are promised in all
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 3.0  # without a sign of life for this long, say why


def run_interruptibly(
    run: Run, training: Training, settings: FitSettings, *, quiet: bool
) -> tuple[Outcome | None, int]:
    """Execute the run in a thread while this one watches for SIGINT and SIGTERM.

    Returns the outcome and 0, or the exit code 128 + signal. When the search does not end in time after a signal (a
    compiler may hold it), what the last progress event held is saved and the process ends here.
    """
    stop = threading.Event()
    result: list[Outcome] = []
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

    threading.Thread(target=_preload, name="gmeql-preload", daemon=True).start()
    with _signals(stop) as received, display as shown:
        worker = threading.Thread(target=work, args=(shown,), name="gmeql-fit", daemon=True)
        worker.start()
        started, told = time.monotonic(), quiet
        while worker.is_alive():
            worker.join(POLL_SECONDS)
            if not told and not latest and time.monotonic() - started > PATIENCE_SECONDS:
                told = True
                print(
                    "getting ready (the first fit after an installation compiles its kernels)",
                    file=sys.stderr,
                    flush=True,
                )
            if received and time.monotonic() - received[0][1] > GRACE_SECONDS:
                break
    code = 128 + received[0][0] if received else 0
    if worker.is_alive():
        _leave(run, training, settings, latest, code)
    if failure and not (received and isinstance(failure[0], KeyboardInterrupt)):
        raise failure[0]
    return (result[0] if result else None), code


def _preload() -> None:
    """Load what the end of a run needs while the search goes on, so that an interrupt need not wait for it."""
    import sympy  # noqa: F401

    from gmeql.report import content, environment

    environment().get_template("report.html.j2")
    content.safe_json({})
    import gmeql.drawing
    import gmeql.intervals
    import gmeql.presenting  # noqa: F401


@contextmanager
def _signals(stop: threading.Event) -> Iterator[list[tuple[int, float]]]:
    """The first SIGINT or SIGTERM sets `stop` and is noted with its time; a second one ends the process at once."""
    received: list[tuple[int, float]] = []

    def handle(number: int, frame: Any) -> None:
        if received:
            os._exit(128 + number)
        received.append((number, time.monotonic()))
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(run: Run, training: Training, settings: FitSettings, latest: list[Any], code: int) -> None:
    """Save what the last event held and end the process: the search's thread cannot be ended."""
    saved = run.description()["state"] in ("stopped", "done")
    saved = saved or (bool(latest) and save_emergency(run, training, settings, latest[0]))
    message = (
        f"interrupted: the formulas so far are saved in {run.folder}"
        if saved
        else "interrupted before a formula was found"
    )
    print(f"{message}; go on with: gmeql resume {run.folder}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(code)
