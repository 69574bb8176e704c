"""What the terminal shows while a benchmark runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from gmeql.evaluation.bench.records import BenchRecord
from gmeql.evaluation.bench.summary import table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class Display:
    """The live table of a benchmark; plain lines where the console is no terminal; nothing where `show` is False."""

    def __init__(
        self, show: bool | Console, problems: Sequence[str], seeds: int, records: Sequence[BenchRecord]
    ) -> None:
        self.problems, self.seeds, self.records = problems, seeds, list(records)
        self.running: dict[tuple[str, int], float] = {}
        self.console: Console | None = None
        self.live: Any = None
        if show is not False:
            from rich.console import Console

            self.console = Console(stderr=True) if show is True else show
        self._context: AbstractContextManager[Any] = nullcontext()
        if self.console is not None and self.console.is_terminal:
            from rich.live import Live

            self.live = self._context = Live(
                get_renderable=self._view, console=self.console, refresh_per_second=2, transient=True
            )

    def __enter__(self) -> Display:
        self._context.__enter__()
        if self.console is not None and self.live is None and self.records:
            self._line(f"{len(self.records)} of {len(self.problems) * self.seeds} runs were finished before")
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def started(self, problem: str, seed: int) -> None:
        self.running[problem, seed] = time.perf_counter()

    def finished(self, record: BenchRecord) -> None:
        self.running.pop((record.problem, record.seed), None)
        self.records.append(record)
        if self.console is not None and self.live is None:
            state = {True: "solved", False: "not solved", None: "done"}[record.solved] if not record.error else "FAILED"
            what = record.error or f"{record.expression}  ({record.reason})"
            self._line(f"{record.problem} seed {record.seed}: {state}, {record.seconds:.2f} s: {what}")

    def _line(self, text: str) -> None:
        from rich.text import Text

        if self.console is not None:
            self.console.print(Text(text), soft_wrap=True)

    def _view(self) -> Table:
        width = self.console.width if self.console is not None else 160
        view = table(self.records, problems=self.problems, seeds=self.seeds, width=width)
        now = time.perf_counter()
        view.caption = ", ".join(f"{name} seed {seed} {now - t:.0f} s" for (name, seed), t in self.running.items())
        return view
