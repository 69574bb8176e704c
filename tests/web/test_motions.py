"""A table that is a time series, from the page."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.runs.motion import write_record
from web_client import HEADERS

T = np.linspace(0.0, 6.0, 40)
ROWS = "t,q,v,same\n" + "\n".join(f"{t},{np.cos(2 * t)},{-2 * np.sin(2 * t)},1" for t in T.tolist())


def dropped(client) -> str:
    response = client.post("/tables?name=swing.csv", content=ROWS.encode(), headers=HEADERS)
    return response.json()["table"]


def test_a_time_series_from_table_to_report(client):
    body = {"table": dropped(client), "time": "t", "states": ["q", "v"], "max_time": 20, "seed": 0}
    response = client.post("/motions", json=body, headers=HEADERS)
    assert response.status_code == 201
    page = f"/motions/{response.json()['motion']}"
    client.app.state.motions.wait()
    assert client.get(page, headers=HEADERS).headers["location"] == page + "/report"
    report = client.get(page + "/report", headers=HEADERS)
    assert report.status_code == 200 and "Phase portrait" in report.text
    listed = client.get("/runs", headers=HEADERS).json()
    assert listed[0]["link"] == page and listed[0]["formula"] == "q' = v; v' = -4*q" and listed[0]["state"] == "done"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"states": []}, "at least one other column"),
        ({"states": ["t"]}, "at least one other column"),
        ({"states": ["w"]}, "no such column"),
        ({"time": "q"}, "times do not increase"),
        ({"states": ["same"]}, "is constant"),
        ({"order": 3}, "order 1 or 2"),
        ({"max_time": -1}, "max-time"),
        ({"out": "/tmp/elsewhere"}, "unknown setting 'out'"),
    ],
)
def test_what_cannot_run_is_refused_at_once(client, settings, words):
    body = {"table": dropped(client), "time": "t", "states": ["q" if settings.get("time") != "q" else "v"]} | settings
    response = client.post("/motions", json=body, headers=HEADERS)
    assert response.status_code == 422 and words in response.json()["error"]
    assert client.get("/runs", headers=HEADERS).json() == []


def test_a_fit_that_an_earlier_server_left_is_said_to_have_failed_and_names_cannot_leave_the_folder(client, tmp_path):
    record = {"state": "running", "reason": "", "states": ["<q>"], "source": "a", "created": "b", "equations": []}
    write_record(tmp_path / "runs" / "old", record)
    page = client.get("/motions/old", headers=HEADERS)
    assert "the server ended before it was done" in page.text and "&lt;q&gt;" in page.text
    assert client.get("/motions/old/report", headers=HEADERS).status_code == 404
    assert client.get("/motions/none", headers=HEADERS).status_code == 404
    assert client.get("/motions/..%2Fold", headers=HEADERS).status_code == 404
    assert client.post("/motions", json={}).status_code in (401, 403)


def test_the_start_page_offers_it(client):
    page = client.get("/", headers=HEADERS).text
    assert "This table is a time series" in page and 'id="states"' in page
