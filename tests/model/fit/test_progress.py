"""Progress as people see it: a live table, notebook HTML, plain lines; hostile names stay text in each."""

from __future__ import annotations

import io
import re
import sys
import types
from dataclasses import replace

import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.fit.progress import Notes, ProgressDisplay, choose_mode, front_html, summary
from gmeql.search.events import Member, Progress

NAME = "<script>alert(1)</script>[bold]x[/]"


def event(loss: float = 0.5, done: bool = False, candidates: int = 1000, name: str = NAME) -> Progress:
    names = (name,)
    members = (
        Member(Expression(Constant(1.5), names), 1.0, 1),
        Member(Expression(Call("mul", (Constant(2.0), Variable(0))), names), loss, 3),
    )
    return Progress(2.5, candidates, 400.0, 3, members, members[-1], done, "max_time" if done else "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_where_output_goes_decides_the_mode() -> None:
    assert choose_mode(Terminal()) == "live"
    assert choose_mode(io.StringIO()) == "lines"
    with pytest.raises(ValueError, match="mode"):
        ProgressDisplay("loud")


def test_lines_are_plain_and_few() -> None:
    stream = io.StringIO()
    with ProgressDisplay("lines", stream=stream, title="target 1 of 2", budget="of 30 s") as display:
        for _ in range(100):
            display.update(event())
        display.update(event(0.25, done=True))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("target 1 of 2: 2.5 s of 30 s, 1,000 candidates (400/s), loss 0.5")
    assert lines[-1].endswith("[time is up]")
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("columns", [60, 80])
def test_the_live_table_leaves_room_for_the_echo_of_a_key(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that writes ^C behind a full line goes to the next one, and the table could not be taken away whole."""
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    with ProgressDisplay("live", stream=stream) as display:
        display.update(event(name="x" * 90))
    lines = re.split("[\r\n]", re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", stream.getvalue()))
    assert columns - 10 < max(map(len, lines)) <= columns - 3
    assert any("…" in line for line in lines)


def test_the_live_table_shows_names_as_text() -> None:
    stream = Terminal()
    with ProgressDisplay("live", stream=stream) as display:
        display.update(event(done=True))
    assert "[bold]x" in stream.getvalue()
    assert "complexity" in stream.getvalue()


def test_notebooks_get_one_display_that_is_updated(monkeypatch) -> None:
    shown: list[tuple[str, str]] = []

    class Handle:
        def update(self, html: str) -> None:
            shown.append(("update", html))

    def display(html: str, display_id: bool) -> Handle:
        shown.append(("display", html))
        return Handle()

    notebook = types.ModuleType("IPython.display")
    notebook.HTML = str
    notebook.display = display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    with ProgressDisplay("notebook") as progress:
        progress.update(event())
        progress.update(event(0.1, done=True))
    assert [kind for kind, _ in shown] == ["display", "update"]
    assert all("<script>" not in html and "&lt;script&gt;" in html for _, html in shown)


def test_html_and_summary_say_the_same() -> None:
    progress = event()
    assert "1,000 candidates" in front_html(progress) and "1,000 candidates" in summary(progress)
    assert "time is up" in front_html(event(done=True))


def test_notes_are_few_and_short() -> None:
    stream = io.StringIO()
    notes = Notes(stream)
    for _ in range(100):
        notes.say("3 systems compared: " + "x" * 500)
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("3 systems compared") and len(line) <= 200


def test_what_a_search_waits_for_is_said_in_every_form() -> None:
    waiting = replace(event(name="x"), note="compiling <once>", candidates=0)
    assert summary(waiting).startswith("compiling <once>; until then loss 0.5") and "candidates" not in summary(waiting)
    html = front_html(waiting)
    assert "compiling &lt;once&gt;" in html and "candidates" not in html and "2*x" in html
    stream = Terminal()
    with ProgressDisplay("live", stream=stream) as display:
        display.update(waiting)
    assert "compiling <once>" in stream.getvalue() and "0 candidates" not in stream.getvalue()
