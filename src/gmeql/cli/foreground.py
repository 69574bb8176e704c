"""A fit in the terminal's foreground: live progress, and signals answered within two seconds with results saved.

After a signal come, in this order: model and front on disk, the formula on the screen, the report.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from gmeql.model.files.storage import StorageError
from gmeql.model.fit.progress import ProgressDisplay
from gmeql.runs.execute import RunOutcome, Stop, execute, save_emergency, write_report

if TYPE_CHECKING:
    from gmeql.runs.folder import Run
    from gmeql.runs.settings import FitSettings
    from gmeql.search.events import Progress
    from gmeql.tables.training import Training

DEADLINE_SECONDS = 1.7  # after a signal; two seconds are promised, and a busy machine is late
REPORT_SECONDS = 30.0  # what the report may take after Ctrl-C; the formula is on the screen by then
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 3.0  # without a sign of life for this long, say why
_leaving = threading.Lock()


class Interrupts:
    """The signals so far: the first ends the search, the second the wait for the report, the third the process.

    Who sends SIGTERM does not wait for a report.
    """

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.code = 0
        self.deadline = math.inf
        self.skip_report = threading.Event()

    def handle(self, number: int, frame: Any) -> None:
        """Take a signal; called by Python between two of its steps in the main thread."""
        if self.skip_report.is_set() and self.code and number == signal.SIGINT:
            os._exit(128 + number)
        if self.code or number == signal.SIGTERM:
            self.skip_report.set()
        if not self.code:
            self.code = 128 + number
            self.deadline = time.monotonic() + DEADLINE_SECONDS
            self.stop.set()


def run_interruptibly(
    run: Run, training: Training, settings: FitSettings, *, quiet: bool, show: Callable[[RunOutcome], None]
) -> tuple[RunOutcome | None, int]:
    """Execute the run in a thread while this one watches for SIGINT and SIGTERM.

    The search's thread may be held by a compiler or a long step; this one answers signals at once. Returns the outcome
    and 0, or the exit code 128 + signal. After a signal the result is given to `show` as soon as it is saved, the report
    follows. When saving takes too long, what the last progress event held is saved instead.
    """
    stop = Stop()
    worker = _Worker(run, training, settings, stop)
    budget = f"of {settings.max_time:g} s" if settings.max_time is not None else ""
    display = (
        nullcontext()
        if quiet
        else ProgressDisplay(title=training.target, budget=budget, seconds=settings.max_time, transient=True)
    )
    threading.Thread(target=_preload, name="gmeql-preload", daemon=True).start()
    with _signals(Interrupts(stop)) as interrupts:
        with display as shown:
            worker.display = shown
            worker.thread.start()
            started, told = time.monotonic(), quiet
            while worker.thread.is_alive() and not interrupts.code:
                worker.thread.join(POLL_SECONDS)
                if not told and worker.latest is None and time.monotonic() - started > PATIENCE_SECONDS:
                    told = True
                    print(
                        "getting ready (the first fit after an installation takes longer: it compiles its kernels)",
                        file=sys.stderr,
                    )
        if interrupts.code:
            return _after_signal(worker, interrupts, quiet=quiet, show=show), interrupts.code
    worker.raise_failure(show)
    return worker.result, 0


class _Worker:
    """The thread of a run, and what it has reached so far."""

    def __init__(self, run: Run, training: Training, settings: FitSettings, stop: Stop) -> None:
        self.run, self.training, self.settings, self.stop = run, training, settings, stop
        self.thread = threading.Thread(target=self._work, name="gmeql-fit", daemon=True)
        self.display: ProgressDisplay | None = None
        self.latest: Progress | None = None
        self.found: RunOutcome | None = None
        self.saved: RunOutcome | None = None
        self.result: RunOutcome | None = None
        self.failure: BaseException | None = None

    def _work(self) -> None:
        try:
            self.result = execute(
                self.run,
                training=self.training,
                settings=self.settings,
                on_progress=self._watch,
                on_found=self._find,
                on_saved=self._keep,
                stop=self.stop,
            )
        except BaseException as error:  # noqa: BLE001  handed to the main thread, which raises it
            self.failure = error

    def _watch(self, progress: Progress) -> None:
        self.latest = progress
        if self.display is not None and not self.stop.is_set():
            self.display.update(progress)

    def _find(self, outcome: RunOutcome) -> None:
        self.found = outcome

    def _keep(self, outcome: RunOutcome) -> None:
        self.saved = outcome

    def raise_failure(self, show: Callable[[RunOutcome], None]) -> None:
        """Raise what ended the run, if anything did; a full disk costs the files, not the formula, which is shown."""
        if self.failure is None:
            return
        if isinstance(self.failure, StorageError) and self.found is not None:
            show(self.found)
        raise self.failure


def _after_signal(
    worker: _Worker, interrupts: Interrupts, *, quiet: bool, show: Callable[[RunOutcome], None]
) -> RunOutcome | None:
    """Save, show, then the report, unless a second Ctrl-C or its own time ends the wait for it."""
    claimed = False
    while worker.saved is None and worker.thread.is_alive() and not claimed:
        worker.thread.join(POLL_SECONDS)
        claimed = time.monotonic() > interrupts.deadline and worker.stop.claim_saving()
    if not isinstance(worker.failure, KeyboardInterrupt):
        worker.raise_failure(show)
    outcome, reporting = worker.saved, worker.thread
    if claimed and worker.latest is not None:
        outcome = save_emergency(worker.run, worker.training, worker.settings, worker.latest)
    if outcome is None or outcome.model is None:
        return None
    show(outcome)
    if claimed:
        reporting = threading.Thread(
            target=write_report, args=(worker.run, outcome.model, worker.training), name="gmeql-report", daemon=True
        )
        reporting.start()
    end = time.monotonic() + REPORT_SECONDS
    if not quiet and reporting.is_alive() and not interrupts.skip_report.is_set():
        print("writing the report; Ctrl-C leaves without it", file=sys.stderr, flush=True)
    while reporting.is_alive() and not interrupts.skip_report.is_set() and time.monotonic() < end:
        reporting.join(POLL_SECONDS)
    report = worker.run.folder / "report.html"
    return replace(outcome, report=report) if not reporting.is_alive() and report.is_file() else outcome


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
def _signals(interrupts: Interrupts) -> Iterator[Interrupts]:
    """SIGINT and SIGTERM go to `interrupts`; outside the main thread nothing can be caught."""
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
