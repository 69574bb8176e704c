"""Runs of the page: made, watched, continued, steered, refused."""

from __future__ import annotations

import json

import pytest

from command_line import LINE
from gmeql import GMEQLRegressor
from web_client import HEADERS, start, upload, wait


def test_a_run_from_table_to_report(client):
    run = start(client)
    state = wait(client, run, "done")
    assert state["report"] and state["progress"]["front"]
    page = client.get(f"/runs/{run}/report", headers=HEADERS)
    assert page.status_code == 200 and "<math" in page.text
    assert client.get(f"/runs/{run}", headers=HEADERS).status_code == 200
    assert [item["name"] for item in client.get("/runs", headers=HEADERS).json()] == [run]


def test_events_tell_the_run_to_its_end(client):
    run = start(client)
    with client.stream("GET", f"/runs/{run}/events", headers=HEADERS) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        states = [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]
    assert states[-1]["state"] == "done" and states[-1]["progress"]["best"]["formula"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target": "q"}, "no such column"),
        ({"target": None}, "choose the column"),
        ({"functions": ["sinn"]}, "sinn"),
        ({"max_time": -1}, "max-time"),
        ({"seed": "x"}, "seed"),
        ({"pin": ["a +"]}, "cannot be read"),
        ({"pin": ["log(a - 100)"]}, "no finite value in row 2"),
        ({"columns": ["y"]}, "explain itself"),
        ({"loss": "cubic"}, "one of squared, huber"),
        ({"selection": "prettiest"}, "one of best, accurate, simple, validation"),
        ({"device": "abacus"}, "one of auto, cpu, gpu"),
        ({"method": "magic"}, "one of fitted, paper, released"),
        ({"method": "paper", "functions": ["sin"]}, "use --method fitted"),
        ({"x_error": "a=0.1"}, "--x-error needs --y-error"),
        ({"groups": "a", "pin": ["b*b"]}, "cannot be combined with --pin"),
        ({"units": "a=m"}, "the target's is missing"),
        ({"template": "f(a"}, "cannot be read"),
        ({"constraint": ["rising in a"]}, "cannot be read"),
        ({"out": "/tmp/elsewhere"}, "unknown setting 'out'"),
    ],
)
def test_what_cannot_run_is_refused_before_the_queue(client, settings, words):
    table = upload(client)
    body = {"table": table["table"], "target": "y", "max_candidates": 100} | settings
    response = client.post("/runs", json=body, headers=HEADERS)
    assert response.status_code == 422 and words in response.json()["error"]
    assert client.get("/runs", headers=HEADERS).json() == []


def test_a_stopped_run_goes_on(client):
    run = start(client)
    wait(client, run, "done")
    response = client.post(f"/runs/{run}/resume", json={"max_time": 1}, headers=HEADERS)
    assert response.status_code == 200
    assert wait(client, run, "done")["report"]
    assert client.post(f"/runs/{run}/resume", json={"max_time": "soon"}, headers=HEADERS).status_code == 422


def test_steering_keeps_what_is_allowed(client):
    run = start(client)
    wait(client, run, "done")
    response = client.post(f"/runs/{run}/steer", json={"forbid": ["sin", "a*b"], "pin": ["a + b"]}, headers=HEADERS)
    assert response.status_code == 201
    steered = response.json()["run"]
    state = wait(client, steered, "done", "failed")
    assert state["state"] == "done", state["reason"]
    assert state["settings"]["forbid"] == ["sin", "a*b"]
    front = [m["formula"] for m in state["progress"]["front"]]
    assert front and not any("sin" in formula for formula in front)
    listed = {run["name"]: run["formula"] for run in client.get("/runs", headers=HEADERS).json()}
    model = GMEQLRegressor.load(client.app.state.jobs.run(steered).model_path)
    assert listed[steered] == state["chosen"]["formula"] == str(model.expression_)
    assert state["progress"]["best"]["formula"] in front
    refined = client.post(f"/runs/{run}/steer", json={"guess": ["a*b + k"]}, headers=HEADERS).json()["run"]
    assert wait(client, refined, "done", "failed")["settings"]["guess"] == ["a*b + k"]
    for wrong, words in (
        ({"pin": ["q"]}, "no column"),
        ({"forbid": ["nothing("]}, "cannot be read"),
        ({"guess": ["free(a)"]}, "which is no function known here"),
    ):
        refused = client.post(f"/runs/{run}/steer", json=wrong, headers=HEADERS)
        assert refused.status_code == 422 and words in refused.json()["error"]


def test_only_named_files_are_given(client):
    run = start(client)
    wait(client, run, "done")
    for name in ("run.json", "data.parquet", "..%2frun.json", "report.html"):
        assert client.get(f"/runs/{run}/files/{name}", headers=HEADERS).status_code == 404
    assert client.get(f"/runs/{run}/files/model.json", headers=HEADERS).json()["format"] == "gmeql-model"
    assert client.get(f"/runs/{run}/files/front.csv", headers=HEADERS).text.startswith("index,")


def test_hostile_names_stay_text(client):
    name = "<script>alert(1)</script>"
    text = LINE.replace("a,b,y", f'{name},b,"{name}y"')
    table = upload(client, text, f"{name}.csv")
    body = {"table": table["table"], "target": f"{name}y", "max_candidates": 300}
    run = client.post("/runs", json=body, headers=HEADERS).json()["run"]
    wait(client, run, "done")
    for path in (f"/runs/{run}", f"/runs/{run}/report"):
        page = client.get(path, headers=HEADERS).text
        assert "<script>alert" not in page and "alert(1)" in page


def test_every_choice_of_the_command_line_is_taken(client):
    run = start(client, loss="robust", selection="accurate", device="cpu")
    settings = wait(client, run, "done")["settings"]
    assert (settings["loss"], settings["selection"], settings["device"]) == ("robust", "accurate", "cpu")


def test_what_is_known_goes_into_the_report(client):
    run = start(client, constraint=["finite for 0 <= a <= 50"], guess=["a"])
    state = wait(client, run, "done")
    assert state["report"]
    page = client.get(f"/runs/{run}/report", headers=HEADERS).text
    assert "finite for 0 &lt;= a &lt;= 50: guaranteed by interval arithmetic." in page
