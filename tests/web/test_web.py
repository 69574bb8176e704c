"""The local page's server: who may talk to it, and what becomes of runs."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gmeql.runs.folder import Run
from gmeql.runs.steering import contains, parse
from gmeql.web import guard, jobs
from gmeql.web.app import create_app
from gmeql.web.server import listen

TOKEN = "the-token"
BASE = "http://127.0.0.1:8123"
LINE = "a,b,y\n" + "".join(f"{i},{i * i % 7},{2.5 * i + 3 * (i * i % 7)}\n" for i in range(1, 13))
HEADERS = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def client(tmp_path: Path):
    with TestClient(create_app(tmp_path / "runs", TOKEN), base_url=BASE, follow_redirects=False) as found:
        yield found


def upload(client: TestClient, text: str = LINE, name: str = "line.csv") -> dict:
    response = client.post("/tables", params={"name": name}, content=text.encode(), headers=HEADERS)
    assert response.status_code == 200, response.text
    return response.json()


def start(client: TestClient, **settings) -> str:
    table = upload(client)
    body = {"table": table["table"], "target": "y", "max_candidates": 600} | settings
    response = client.post("/runs", json=body, headers=HEADERS)
    assert response.status_code == 201, response.text
    return response.json()["run"]


def wait(client: TestClient, run: str, *states: str) -> dict:
    for _ in range(900):
        state = client.get(f"/runs/{run}/state", headers=HEADERS).json()
        if state["state"] in states:
            return state
        time.sleep(0.1)
    raise AssertionError(f"still {state['state']}")


# ------------------------------------------------------------------------------------------------- who may talk to it


@pytest.mark.parametrize("path", ["/", "/runs", "/static/style.css", "/runs/x/report", "/tables/0", "/nowhere"])
def test_no_token_is_401(client, path):
    assert client.get(path).status_code == 401
    assert client.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get(path, params={"token": "wrong"}).status_code == 401


def test_the_address_with_the_token_gives_a_strict_cookie(client):
    response = client.get("/", params={"token": TOKEN, "table": "1"})
    assert response.status_code == 303 and response.headers["location"] == "/?table=1"
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8123", "127.0.0.1:9", "127.0.0.1", "localhost.evil.example:8123", ""]
)
def test_a_foreign_host_is_403(client, host):
    assert client.get("/", headers=HEADERS | {"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8123", "localhost:8123", "LOCALHOST:8123", "[::1]:8123"])
def test_loopback_hosts_are_served(client, host):
    assert client.get("/", headers=HEADERS | {"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8123", "http://127.0.0.1:9", "http://localhost"]
)
def test_a_foreign_origin_is_403(client, origin):
    assert client.post("/runs", json={}, headers=HEADERS | {"origin": origin}).status_code == 403
    assert client.get("/", headers=HEADERS | {"origin": origin}).status_code == 403


def test_a_request_from_another_site_is_403(client):
    assert client.get("/", headers=HEADERS | {"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/", headers=HEADERS | {"sec-fetch-site": "same-site"}).status_code == 403


def test_a_change_by_cookie_needs_our_origin(client):
    client.get("/", params={"token": TOKEN})
    assert client.post("/runs/x/stop").status_code == 403
    assert client.post("/runs/x/stop", headers={"origin": BASE}).status_code == 404


def test_too_large_is_413(client, monkeypatch):
    monkeypatch.setattr(guard, "MAX_BODY_BYTES", 1000)
    assert client.post("/tables", content=b"x" * 1001, headers=HEADERS).status_code == 413

    def chunks():
        for _ in range(20):
            yield b"y" * 100

    assert client.post("/tables", content=chunks(), headers=HEADERS).status_code == 413
    assert client.post("/tables", content=b"a,y\n1,2\n2,3\n", headers=HEADERS).status_code == 200


def test_a_lying_length_is_413(client):
    for length in ("-1", "1e9", str(10**12)):
        request = client.build_request("POST", "/tables", content=b"x", headers=HEADERS)
        request.headers["content-length"] = length
        assert client.send(request).status_code == 413


def test_only_loopback_listens():
    found = listen(0)
    try:
        assert found.getsockname()[0] == "127.0.0.1" and found.family == socket.AF_INET
    finally:
        found.close()


def test_every_answer_carries_the_security_headers(client):
    for path, headers in (("/", HEADERS), ("/", {}), ("/nowhere", HEADERS)):
        response = client.get(path, headers=headers)
        assert (
            response.headers["x-content-type-options"] == "nosniff" and response.headers["cache-control"] == "no-store"
        )
    assert "script-src 'self'" in client.get("/", headers=HEADERS).headers["content-security-policy"]


@pytest.mark.parametrize("name", ["%2e%2e", "..%2f..%2fetc", "a%00b", "uploads", ".hidden", "x" * 500])
def test_paths_cannot_leave_the_folder(client, name):
    for path in (f"/runs/{name}", f"/runs/{name}/report", f"/runs/{name}/files/model.json", f"/static/{name}"):
        assert client.get(path, headers=HEADERS).status_code in (404, 307)


def test_only_named_files_are_given(client):
    run = start(client)
    wait(client, run, "done")
    for name in ("run.json", "data.parquet", "..%2frun.json", "report.html"):
        assert client.get(f"/runs/{run}/files/{name}", headers=HEADERS).status_code == 404
    assert client.get(f"/runs/{run}/files/model.json", headers=HEADERS).json()["format"] == "gmeql-model"
    assert client.get(f"/runs/{run}/files/front.csv", headers=HEADERS).text.startswith("index,")


# ------------------------------------------------------------------------------------------------- tables and runs


def test_a_table_comes_back_judged(client):
    table = upload(client, "t;who;y\n0,5;ann;1\n1,5;bob;2\n", "a <b>.csv")
    assert [column["kind"] for column in table["columns"]] == ["number", "text", "number"]
    assert "decimal mark: comma" in table["notes"] and table["preview"][0] == ["0,5", "ann", "1"]
    again = client.get(f"/tables/{table['table']}", headers=HEADERS).json()
    assert again["columns"] == table["columns"]


def test_a_bad_table_is_one_line(client):
    response = client.post("/tables", params={"name": "bad.csv"}, content=b"a,y\n1,2\n3\n", headers=HEADERS)
    assert response.status_code == 422 and "bad.csv, row 3" in response.json()["error"]


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
        ({"pin": ["a +"]}, "can be read"),
        ({"pin": ["log(a - 100)"]}, "no finite value in row 2"),
        ({"columns": ["y"]}, "explain itself"),
    ],
)
def test_what_cannot_run_is_refused_before_the_queue(client, settings, words):
    table = upload(client)
    body = {"table": table["table"], "target": "y", "max_candidates": 100} | settings
    response = client.post("/runs", json=body, headers=HEADERS)
    assert response.status_code == 422 and words in response.json()["error"]
    assert client.get("/runs", headers=HEADERS).json() == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"3"])
def test_a_body_that_is_no_object_is_400(client, body):
    assert client.post("/runs", content=body, headers=HEADERS).status_code == 400


def test_runs_wait_for_each_other_and_can_be_stopped(client):
    first = start(client, max_candidates=None, max_time=120, functions=["add", "mul"], columns=["a"])
    second = start(client)
    third = start(client)
    state = client.get(f"/runs/{third}/state", headers=HEADERS).json()
    assert state["state"] == "queued" and state["position"] in (1, 2)
    client.post(f"/runs/{third}/stop", headers=HEADERS)
    assert client.get(f"/runs/{third}/state", headers=HEADERS).json()["state"] == "stopped"
    client.post(f"/runs/{first}/stop", headers=HEADERS)
    assert wait(client, first, "stopped", "done")["report"]
    assert wait(client, second, "done")["state"] == "done"


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
    for wrong, words in (({"pin": ["q"]}, "no column"), ({"forbid": ["nothing("]}, "can be read")):
        refused = client.post(f"/runs/{run}/steer", json=wrong, headers=HEADERS)
        assert refused.status_code == 422 and words in refused.json()["error"]


def test_a_new_server_takes_up_what_the_last_one_left(tmp_path):
    folder = tmp_path / "runs"
    with TestClient(create_app(folder, TOKEN), base_url=BASE) as first:
        run = start(first, max_candidates=None, max_time=6)
        wait(first, run, "running", "done")
    assert Run.open(folder / run).description()["state"] in ("queued", "done")
    Run.open(folder / run).update(state="running")  # as a killed server would have left it
    with TestClient(create_app(folder, TOKEN), base_url=BASE) as second:
        assert wait(second, run, "done", "failed")["report"]


def test_the_end_of_the_server_does_not_undo_what_is_over(tmp_path):
    folder = tmp_path / "runs"
    with TestClient(create_app(folder, TOKEN), base_url=BASE) as client:
        over = start(client)
        wait(client, over, "done")
        by_hand = start(client, max_candidates=None, max_time=120, functions=["add", "mul"], columns=["a"])
        wait(client, by_hand, "running")
        client.post(f"/runs/{by_hand}/stop", headers=HEADERS)
        wait(client, by_hand, "stopped", "done")
        open_one = start(client, max_candidates=None, max_time=120, functions=["add", "mul"], columns=["a"])
        wait(client, open_one, "running")
    states = [Run.open(folder / name).description()["state"] for name in (over, by_hand, open_one)]
    assert states[0] == "done" and states[1] in ("stopped", "done") and states[2] in ("queued", "done")


def test_old_uploads_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "MAX_UPLOADS", 3)
    uploads = jobs.Uploads(tmp_path)
    keys = [uploads.add(b"a,y\n1,2\n", f"../../t{i}.csv") for i in range(5)]
    assert len(list((tmp_path / "uploads").iterdir())) == 3
    assert uploads.find(keys[-1]) == ("t4.csv", b"a,y\n1,2\n") and uploads.find("../x") is None


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


# ------------------------------------------------------------------------------------------------- parts of formulas


@pytest.mark.parametrize(
    ("whole", "part", "found"),
    [
        ("a*b + sin(a)", "sin(a)", True),
        ("2*b*a", "a*b", True),
        ("a/b", "a/b", True),
        ("a*b", "a/b", False),
        ("sin(a*b)", "b*a", True),
        ("a**2", "a*a", False),
        ("square(a)", "a**2", True),
        ("a - b", "b - a", False),
        ("1 + a + b", "a + b", True),
        ("sin(a)", "sin(b)", False),
        ("3*a", "3*a", True),
        ("3*a", "4*a", False),
    ],
)
def test_parts_are_found_whatever_their_order(whole, part, found):
    assert contains(parse(whole, ["a", "b"]), parse(part, ["a", "b"])) is found


@pytest.mark.parametrize(
    "text",
    ["", "a b", "__import__('os')", "a.b", "a[0]", "lambda: 1", "a if b else 1", "sin", "sin(a, b)", "'x'", "1_0j", "q",
             "a" * 400, "(" * 250 + "a", "`q`", "column_in_backticks_3", "9**9**9**9", "True"]
)  # fmt: skip
def test_text_that_is_no_formula_is_refused(text):
    from gmeql.runs.settings import ConfigError

    if text == "9**9**9**9":  # read as a tree, never computed while reading
        assert parse(text, ["a"]).depth > 1
        return
    with pytest.raises(ConfigError):
        parse(text, ["a", "b"])


def test_names_of_any_kind_stand_in_backticks():
    assert parse("`flow rate`/`<b>`", ["<b>", "flow rate"]).variables == (0, 1)
