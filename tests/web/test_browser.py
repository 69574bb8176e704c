"""The live page in a real browser."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import HOSTILE, LINE
from heat import long_form

pytestmark = pytest.mark.browser
NOISY = "a,y\n" + "".join(f"{i / 7},{i / 3 + (i * 7919 % 101) / 50}\n" for i in range(1, 60))
PATIENCE = 240_000  # a fresh machine compiles kernels first


class Server:
    """`gmeql ui` as a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "gmeql", "ui", "--no-open", "--runs", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("page") / "runs")
    yield found
    if found.process.poll() is None:
        found.end(signal.SIGKILL)


def upload(page: Any, address: str, text: str, name: str = "table.csv") -> None:
    page.goto(address)
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": text.encode()})
    page.locator("#form").wait_for()


def wait_until_done(page: Any) -> None:
    page.locator("#state.done, #state.failed").wait_for(timeout=PATIENCE)
    assert page.locator("#state").get_attribute("class") == "state done", page.locator("#error").inner_text()


CATEGORIES = "colour,a_column_with_a_rather_long_name,b,a_target_with_an_even_longer_name_than_that\n" + "".join(
    f"{('red', 'green', 'blue')[i % 3]},{i / 4},{i * i % 7},{2.5 * i + 3 * (i % 3)}\n" for i in range(1, 40)
)


def test_the_first_page_fits_a_phone_and_lists_every_column_that_explains(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    upload(page, server.address, CATEGORIES)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    offered = page.locator("#columns input").evaluate_all("(boxes) => boxes.map((box) => [box.value, box.checked])")
    assert ["colour", True] in offered and len(offered) == 3


def test_from_upload_to_formula(page, server):
    upload(page, server.address, LINE)
    assert "token" not in page.url
    assert page.locator("#target").input_value() == "y"
    page.reload()  # the table is still there
    page.locator("#form").wait_for()
    page.fill("#seconds", "20")
    page.click("#start")
    page.locator("#report:not([hidden])").wait_for(timeout=PATIENCE)
    formula = page.frame_locator("#report").locator(".formula:visible").first
    formula.wait_for(timeout=PATIENCE)
    assert re.search(r"2\.5\*a", formula.get_attribute("aria-label")) and "done" in page.locator("#state").inner_text()
    with page.expect_download() as download:
        page.click("#model")
    assert "gmeql-model" in Path(download.value.path()).read_text()
    spare = """() => {
      const frame = document.getElementById("report"), body = frame.contentDocument.body;
      return Math.abs(frame.offsetHeight - body.offsetHeight) < 12 && body.offsetWidth <= innerWidth;
    }"""
    for width in (390, 1280):  # the frame of a report shrinks and grows with it
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function(spare)
    page.goto(page.url.split("/runs/")[0] + "/")
    page.locator("#runs a").first.wait_for()
    assert "2.5*a" in page.locator("#runs").inner_text()


def test_stop_reload_resume(page, server):
    upload(page, server.address, NOISY)
    page.fill("#seconds", "300")
    page.click("#start")
    page.locator("#front-plot .member").first.wait_for(timeout=PATIENCE)
    page.locator("#front-plot .member").first.dispatch_event("click")  # pick while it is redrawn all the time
    page.reload()
    page.locator("#front-plot .member").first.wait_for(timeout=PATIENCE)
    assert page.locator("#stop").is_visible()
    page.click("#stop")
    page.locator("#report:not([hidden])").wait_for(timeout=PATIENCE)
    assert "stopped" in page.locator("#state").inner_text()
    page.reload()
    page.locator("#report:not([hidden])").wait_for(timeout=PATIENCE)
    page.fill("#seconds", "1")
    page.click("#resume")
    page.locator("#state.running, #state.queued").wait_for(timeout=PATIENCE)
    wait_until_done(page)
    predict_a_new_table(page)


def predict_a_new_table(page: Any) -> None:
    """By the formula, averaged with intervals, and refused where a column is missing: on the page of a finished run."""
    page.click("#predict > summary")
    new = "a\n" + "".join(f"{i}\n" for i in range(1, 13))
    page.set_input_files("#predict-file", {"name": "new.csv", "mimeType": "text/csv", "buffer": new.encode()})
    page.click("#predict-start")
    page.locator("#predicted:not([hidden])").wait_for(timeout=PATIENCE)
    assert page.locator("#predict-head th").all_inner_texts() == ["a", "prediction"]
    page.check("#average")
    page.click("#predict-start")
    page.locator("#predict-head th:nth-child(4)").wait_for(timeout=PATIENCE)
    assert page.locator("#predict-head th").all_inner_texts() == [
        "a",
        "prediction",
        "prediction low",
        "prediction high",
    ]
    _, mean, low, high = (
        float(text) for text in page.locator("#predict-rows tr").first.locator("td").all_inner_texts()
    )
    assert low < mean < high
    assert "6 of 12" in page.locator("#predict-notes").inner_text()
    with page.expect_download() as saved:
        page.click("#predictions")
    assert len(Path(saved.value.path()).read_text().splitlines()) == 13
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.set_input_files("#predict-file", {"name": "bad.csv", "mimeType": "text/csv", "buffer": b"q\n1\n2\n"})
    page.click("#predict-start")
    page.locator("#predict-error:not([hidden])").wait_for(timeout=PATIENCE)
    assert "'a'" in page.locator("#predict-error").inner_text()
    page.trouble[:] = [item for item in page.trouble if "422" not in item]


@pytest.mark.slow  # needs a machine of its own: a page with a run beside it can make it late
def test_a_killed_server_goes_on_from_the_folder(page, tmp_path):
    first = Server(tmp_path / "runs")
    upload(page, first.address, NOISY)
    page.fill("#seconds", "6")
    page.click("#start")
    page.locator("#front-plot .member").first.wait_for(timeout=PATIENCE)
    path = page.url.split("/runs/")[1]
    first.end(signal.SIGKILL)
    second = Server(tmp_path / "runs")
    try:
        base, token = second.address.split("/?")
        page.goto(f"{base}/runs/{path}?{token}")
        wait_until_done(page)
        assert page.locator("#report").is_visible()
    finally:
        assert second.end() == 143


def test_hostile_names_do_nothing_on_the_live_page_and_steering(page, server):
    quoted = HOSTILE.replace('"', '""')
    upload(page, server.address, LINE.replace("a,b,y", f'"{quoted}",b,"{quoted}y"'), f"{HOSTILE}.csv")
    page.select_option("#target", f"{HOSTILE}y")
    page.fill("#seconds", "4")
    page.click("#start")
    page.locator("#report:not([hidden])").wait_for(timeout=PATIENCE)
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
    first = page.url
    page.click("#steer summary")
    page.locator("#forbid").get_by_label("sin", exact=True).check()
    page.fill("#pin", "nonsense(")
    page.click("#steer-start")
    page.locator("#error:not([hidden])").wait_for()
    page.fill("#pin", "b*b")
    page.fill("#steer-seconds", "2")
    page.click("#steer-start")
    page.wait_for_url(lambda url: url != first and "/runs/" in url)
    page.locator("#report:not([hidden])").wait_for(timeout=PATIENCE)
    page.goto(page.url.split("/runs/")[0] + "/")
    page.locator("#runs a").first.wait_for()
    assert page.evaluate("window.hacked") is None
    page.trouble[:] = [item for item in page.trouble if "422" not in item]  # the refused pin, as it should be


def test_a_bad_table_is_explained(page, server):
    page.goto(server.address)
    page.set_input_files("#file", {"name": "bad.csv", "mimeType": "text/csv", "buffer": b"a,y\n1,2\n3\n"})
    page.locator("#error:not([hidden])").wait_for()
    assert "bad.csv, row 3" in page.locator("#error").inner_text()
    page.trouble[:] = [item for item in page.trouble if "422" not in item]


SWING = "t,q,v\n" + "".join(
    f"{i / 8},{math.cos(i / 4) + (i * 7919 % 101) / 400},{-2 * math.sin(i / 4)}\n" for i in range(60)
)


@pytest.mark.slow  # tests of the server's side are quicker; a command of its own each
def test_a_time_series_is_stopped_and_keeps_what_was_found(page, server):
    upload(page, server.address, SWING)
    page.locator("#series").check()
    page.fill("#seconds", "400")
    page.click("#start")
    page.locator("#said", has_text="compared").wait_for(timeout=PATIENCE)
    assert "of at most 400 s" in page.locator("#figures").inner_text()
    page.click("#stop")
    page.locator("#report:not([hidden])").wait_for(timeout=PATIENCE)
    assert page.locator("#state").inner_text() == "stopped"
    assert page.frame_locator("#report").locator(".formula").count() == 2
    with page.expect_download() as download:
        page.click("#model")
    assert "gmeql" in Path(download.value.path()).read_text()


@pytest.mark.slow  # tests of the server's side are quicker; a command of its own each
def test_a_field_from_table_to_law(page, server):
    upload(page, server.address, long_form())
    page.locator("#grid").check()
    assert page.locator("#space input").evaluate_all("(all) => all.map((b) => [b.value, b.checked])")[0] == ["x", True]
    page.fill("#seconds", "2")
    page.click("#start")
    page.locator("#report:not([hidden])").wait_for(timeout=PATIENCE)
    formula = page.frame_locator("#report").locator(".formula").first
    assert formula.get_attribute("aria-label") == "u_t = 0.3*u_xx"


@pytest.mark.slow  # tests of the server's side are quicker; a command of its own each
def test_classes_of_words_from_table_to_formulas(page, server):
    """The column of words is offered, its classes are told apart, and each formula has a page of its own."""
    rng = np.random.default_rng(0)
    rows = [f"{a},{b},{'in' if a * a + b * b < 2 else 'out'}" for a, b in rng.uniform(-2, 2, (120, 2)).tolist()]
    upload(page, server.address, "\n".join(["a,b,where", *rows]))
    page.locator("#classes").check()
    assert page.locator("#label").input_value() == "where" and not page.locator("#target").is_visible()
    assert page.locator("#columns input").evaluate_all("(all) => all.map((b) => b.value)") == ["a", "b"]
    page.fill("#seconds", "1")
    page.click("#start")
    page.locator("#report:not([hidden])").wait_for(timeout=PATIENCE)
    inner = page.frame_locator("#report")
    assert inner.locator(".formula").first.get_attribute("aria-label").startswith("logit of out = ")
    assert [int(n) for n in inner.locator("table.counts td b").all_inner_texts()] > [0, 0]
    inner.get_by_role("link", name="all about this formula").click()
    inner.locator("h1", has_text="logit of where is out").wait_for(state="attached")


def test_an_equation_is_refused_mended_and_solved(page, server):
    page.goto(server.address)
    page.click("#solve summary")
    page.fill("#equation", "y'' = nonsense(y)")
    page.fill("#ics", "y(0)=0, y'(0)=2")
    page.click("#solve-start")
    page.locator("#solve-error:not([hidden])").wait_for()
    page.fill("#equation", "y'' = -4*y")
    page.click("#solve-start")
    page.locator("#report:not([hidden])").wait_for(timeout=PATIENCE)
    inner = page.frame_locator("#report")
    assert inner.locator(".formula").first.get_attribute("aria-label") == "y = sin(2*x)"
    assert "proven" in inner.locator(".proof").inner_text()
    page.goto(page.url.split("/equations/")[0] + "/")
    page.locator("#runs a").first.wait_for()
    assert "y = sin(2*x)" in page.locator("#runs").inner_text()
    page.trouble[:] = [item for item in page.trouble if "422" not in item]  # the refused equation, as it should be
