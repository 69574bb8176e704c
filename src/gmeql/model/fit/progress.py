"""Showing a running search: a live table in terminal and notebook, plain lines everywhere else. All of it on stderr.

`ProgressDisplay` consumes the `Progress` events of `gmeql.search.search`; the same feed callbacks, logs and the web page.
"""

from __future__ import annotations

import sys
import time
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from gmeql.formula.messages import shortened
from gmeql.formula.printing.notation import four_digits

if TYPE_CHECKING:
    from rich.table import Table

    from gmeql.search.events import Member, Progress

MODES = ("auto", "live", "notebook", "lines")
REFRESH_SECONDS = 0.1
"""Live displays: faster than the eye needs, slower than the search is disturbed by."""
LINE_SECONDS = 5.0
"""Plain lines: one when the best formula changes, and one at least this often."""
NOTE_SECONDS = 1.0
SHOWN_MEMBERS = 12
SHOWN_WIDTH = 200
KEY_WIDTH = 3
"""Left free at the end of a live line: a terminal writes ^C there, which would else begin another line."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook that can update what it displayed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell" or "google.colab" in type(shell).__module__


def choose_mode(stream: TextIO) -> str:
    """`"notebook"` inside one, `"live"` on a terminal, else `"lines"`."""
    if in_notebook():
        return "notebook"
    return "live" if stream.isatty() else "lines"


def summary(progress: Progress, budget: str = "") -> str:
    """One line: time and candidates spent, speed, best loss and formula.

    `budget` follows the time spent, for example "of 30 s".
    """
    spent = f"{progress.elapsed:.1f} s{' ' + budget if budget else ''}"
    best = progress.best
    formula = f"loss {four_digits(best.loss)}, complexity {best.complexity}: {_clip(str(best.expression))}"
    if progress.note:
        return f"{progress.note}; until then {formula}"
    return f"{spent}, {progress.candidates:,} candidates ({progress.rate:,.0f}/s), {formula}"


def front_table(
    progress: Progress, title: str = "", seconds: float | None = None, *, width: int = SHOWN_WIDTH
) -> Table:
    """The state of a search as a rich table: one row per member of the front, the best one bold, figures below.

    `seconds` is the budget, for the time left; `width` the letters that a line has.
    """
    from rich.table import Table
    from rich.text import Text

    left = f", {max(0.0, seconds - progress.elapsed):.0f} s left" if seconds is not None and not progress.done else ""
    caption = (
        f"{progress.elapsed:.1f} s{left}, {progress.candidates:,} candidates, {progress.rate:,.0f}/s, "
        f"{progress.islands:,} islands{', ' + _why_over(progress) if progress.done else ''}"
    )
    if progress.note:
        caption = f"{progress.note}; a first look until then"
    table = Table(title=title or None, caption=caption, caption_justify="left")
    table.add_column("complexity", justify="right", min_width=10)
    table.add_column("loss", justify="right", min_width=10)
    room = width - 2 * 10 - 10  # two columns of figures, lines and gaps
    table.add_column("formula", min_width=max(1, min(44, room)))  # for the figures below; only this one gives way
    for member in shown_members(progress):
        # Text, not markup: a column may be called "[bold]" or "[/]".
        style = "bold green" if member.complexity == progress.best.complexity else ""
        formula = Text(_clip(str(member.expression)), style=style, no_wrap=True, overflow="ellipsis")
        table.add_row(Text(str(member.complexity), style=style), Text(four_digits(member.loss), style=style), formula)
    return table


def _why_over(progress: Progress) -> str:
    """Why a search ended, in words."""
    from gmeql.search.events import reason_text

    return reason_text(progress.reason)


def shown_members(progress: Progress) -> tuple[Member, ...]:
    """The members that find room: the best one, those before it, and a few after it."""
    best = next((i for i, m in enumerate(progress.front) if m.complexity == progress.best.complexity), 0)
    end = min(len(progress.front), max(SHOWN_MEMBERS, best + 4))
    return progress.front[max(0, end - SHOWN_MEMBERS) : end]


def front_html(progress: Progress, title: str = "") -> str:
    """`front_table` as HTML for notebooks, every text escaped."""
    rows = "".join(
        f'<tr><td>{m.complexity}</td><td>{four_digits(m.loss)}</td><td style="text-align:left">'
        f"<code>{escape(_clip(str(m.expression)))}</code></td></tr>"
        for m in shown_members(progress)
    )
    state = f"{progress.elapsed:.1f} s, {progress.candidates:,} candidates, {progress.rate:,.0f}/s"
    if progress.done:
        state += f", {escape(_why_over(progress))}"
    if progress.note:
        state = escape(f"{progress.note}; a first look until then")
    head = "<tr><th>complexity</th><th>loss</th><th>formula</th></tr>"
    return f"<div>{escape(title)}<table><thead>{head}</thead><tbody>{rows}</tbody></table>{state}</div>"


class ProgressDisplay:
    """Shows a search while it runs; use as a context manager and call `update` with each event.

    `mode="auto"` looks where the output goes. `seconds` is the time budget, to show what is left of it. A `transient`
    live table is wiped at the end. `stream` is stderr by default, so that data on stdout stays clean.
    """

    def __init__(
        self,
        mode: str = "auto",
        *,
        title: str = "",
        budget: str = "",
        seconds: float | None = None,
        transient: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode={mode!r} is not a display mode; use one of {list(MODES)}")
        self.stream = stream if stream is not None else sys.stderr
        self.mode = choose_mode(self.stream) if mode == "auto" else mode
        self.title = title
        self.budget = budget
        self.seconds = seconds
        self.transient = transient
        self._shown_at = -float("inf")
        self._shown_loss = float("inf")
        self._live: Any = None
        self._handle: Any = None

    def __enter__(self) -> ProgressDisplay:
        if self.mode == "live":
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self.stream), auto_refresh=False, transient=self.transient)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(self, progress: Progress) -> None:
        """Show `progress`, unless the last one shown is too recent; the last event of a run is always shown."""
        now = time.monotonic()
        if self.mode == "lines":
            improved = progress.best.loss < self._shown_loss and now - self._shown_at >= 1.0
            if progress.done or improved or now - self._shown_at >= LINE_SECONDS:
                prefix = f"{self.title}: " if self.title else ""
                ending = f" [{_why_over(progress)}]" if progress.done else ""
                print(f"{prefix}{summary(progress, self.budget)}{ending}", file=self.stream, flush=True)
                self._shown_at, self._shown_loss = now, progress.best.loss
            return
        if not progress.done and now - self._shown_at < REFRESH_SECONDS:
            return
        self._shown_at = now
        if self.mode == "notebook":
            self._show_in_notebook(front_html(progress, self.title))
        elif self._live is not None:
            from rich.constrain import Constrain

            width = self._live.console.width - KEY_WIDTH
            table = front_table(progress, self.title, self.seconds, width=width)
            self._live.update(Constrain(table, width), refresh=True)

    def _show_in_notebook(self, html: str) -> None:
        from IPython.display import HTML, display  # only reached inside a notebook, which brings IPython

        if self._handle is None:
            self._handle = display(HTML(html), display_id=True)
        else:
            self._handle.update(HTML(html))


class Notes:
    """Plain lines about work that has no events of a search, at most one a second."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream if stream is not None else sys.stderr
        self._said_at = -float("inf")

    def say(self, text: str) -> None:
        """Write a line, unless the last one is too recent."""
        now = time.monotonic()
        if now - self._said_at >= NOTE_SECONDS:
            print(_clip(text), file=self.stream, flush=True)
            self._said_at = now


def _clip(text: str) -> str:
    return shortened(text, SHOWN_WIDTH)
