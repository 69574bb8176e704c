"""A browser's side of the local page, for tests."""

from __future__ import annotations

import time

from starlette.testclient import TestClient

from command_line import LINE

TOKEN = "the-token"
BASE = "http://127.0.0.1:8123"
HEADERS = {"authorization": f"Bearer {TOKEN}"}


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


def ended(client, path: str, body: dict) -> dict:
    """The state of a run that was asked for, when it is over; its page and report can be looked at."""
    response = client.post(path, json=body, headers=HEADERS)
    assert response.status_code == 201, response.text
    page = f"/equations/{response.json()['equations']}"
    client.app.state.commands.wait()
    state = client.get(page + "/state", headers=HEADERS).json()
    assert state["state"] == "done", state["reason"]
    assert client.get(page, headers=HEADERS).status_code == 200
    listed = client.get("/runs", headers=HEADERS).json()[0]
    assert listed["link"] == page and listed["formula"] == "; ".join(state["equations"])
    return state
