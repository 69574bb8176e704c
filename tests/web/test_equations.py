"""Differential equations from the page: time series, fields, equations to be solved."""

from __future__ import annotations

import numpy as np
import pytest
from heat import long_form
from web_client import HEADERS, ended, upload

TIMES = np.linspace(0.0, 6.0, 40)
SWING = 't,"q, m",v,same\n' + "\n".join(f"{t},{np.cos(2 * t)},{-2 * np.sin(2 * t)},1" for t in TIMES.tolist())


@pytest.mark.slow  # classes go the same way from table to report, and the command is tested by itself
def test_a_time_series_from_table_to_report(client):
    body = {"table": upload(client, SWING)["table"], "time": "t", "states": ["q, m", "v"], "max_time": 3, "seed": 0}
    state = ended(client, "/motions", body)
    assert state["equations"] == ["q, m' = v", "v' = -4*`q, m`"]
    report = client.get(state["link"] + "/report", headers=HEADERS)
    assert "Phase portrait" in report.text and "frame-ancestors 'self'" in report.headers["content-security-policy"]
    assert client.get(state["link"] + "/files/model.json", headers=HEADERS).json()["format"].startswith("gmeql")


@pytest.mark.slow  # the page of the command line's fields, by the way that time series go
def test_a_field_in_long_form_from_table_to_report(client):
    body = {"table": upload(client, long_form())["table"], "time": "t", "space": ["x"], "fields": ["u"], "max_time": 2}
    state = ended(client, "/fields", body)
    assert state["equations"] == ["u_t = 0.3*u_xx"]
    assert "Simulated against measured" in client.get(state["link"] + "/report", headers=HEADERS).text


@pytest.mark.slow  # the browser solves one too
def test_an_equation_is_solved_and_its_proof_is_on_the_page(client):
    state = ended(client, "/solutions", {"equation": "y'' = -y", "ics": "y(0)=0, y'(0)=1", "max_time": 30})
    assert state["equations"] == ["y = sin(x)"]
    assert "proven: equation and conditions vanish" in client.get(state["link"] + "/report", headers=HEADERS).text
    assert client.get(state["link"] + "/files/model.json", headers=HEADERS).status_code == 404


@pytest.mark.parametrize(
    ("path", "settings", "words"),
    [
        ("/motions", {"states": []}, "at least one other column"),
        ("/motions", {"states": ["t"]}, "at least one other column"),
        ("/motions", {"states": ["w"]}, "no such column"),
        ("/motions", {"time": "v"}, "times do not increase"),
        ("/motions", {"states": ["same"]}, "is constant"),
        ("/motions", {"order": 3}, "order must be 1 or 2"),
        ("/motions", {"max_time": -1}, "max-time"),
        ("/motions", {"out": "/tmp/elsewhere"}, "unknown setting 'out'"),
        ("/fields", {"space": ["v"], "fields": ["q, m"]}, "give one row for each point"),
        ("/fields", {"space": ["t"], "fields": ["v"]}, "each column once"),
        ("/fields", {"space": "t", "fields": ["v"]}, "list of names"),
        ("/solutions", {"equation": "y = 3"}, "holds no derivative"),
        ("/solutions", {"equation": "y' = exec(y)"}, "exec"),
        ("/solutions", {"equation": "y' = y", "ics": "y(0)=1, y(0)=2"}, "contradict"),
        ("/solutions", {"equation": ["y' = y"]}, "must be text"),
        ("/solutions", {"equation": "y' = " + "y+" * 2000 + "1"}, "at most 2000 characters"),
    ],
)
def test_what_cannot_run_is_refused_at_once(client, path, settings, words):
    body = settings
    if path != "/solutions":
        given = {"states": ["q, m"]} if path == "/motions" else {}
        body = {"table": upload(client, SWING)["table"], "time": "t"} | given | settings
    response = client.post(path, json=body, headers=HEADERS)
    assert response.status_code == 422 and words in response.json()["error"]
    assert client.get("/runs", headers=HEADERS).json() == []


def test_names_cannot_leave_the_folder_and_strangers_are_turned_away(client):
    for path in ("none", "..%2Fnone", "none/report", "none/state", "none/files/model.json"):
        assert client.get(f"/equations/{path}", headers=HEADERS).status_code == 404
    assert client.post("/equations/none/stop", headers=HEADERS).status_code == 404
    for path in ("/motions", "/fields", "/solutions"):
        assert client.post(path, json={}).status_code in (401, 403)


def test_the_start_page_offers_all_three(client):
    page = client.get("/", headers=HEADERS).text
    assert "This table is a time series" in page and "This table is a field" in page and 'id="equation"' in page
