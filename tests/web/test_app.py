"""The application from its start to its end."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from gmeql.runs.folder import Run
from gmeql.web.app import create_app
from web_client import BASE, HEADERS, TOKEN, start, wait


@pytest.mark.parametrize("name", ["%2e%2e", "..%2f..%2fetc", "a%00b", "uploads", ".hidden", "x" * 500])
def test_paths_cannot_leave_the_folder(client, name):
    for path in (f"/runs/{name}", f"/runs/{name}/report", f"/runs/{name}/files/model.json", f"/static/{name}"):
        assert client.get(path, headers=HEADERS).status_code in (404, 307)


def test_a_new_server_takes_up_what_the_last_one_left(tmp_path):
    folder = tmp_path / "runs"
    app = create_app(folder, TOKEN)
    with TestClient(app, base_url=BASE) as first:
        run = start(first, max_candidates=None, max_time=6)
        wait(first, run, "running", "done")
    app.state.jobs.close(60)  # a server's process ends; this one goes on, so its last step is waited for
    assert Run.open(folder / run).description()["state"] in ("queued", "done")
    Run.open(folder / run).update(state="running")  # as a killed server would have left it
    with TestClient(create_app(folder, TOKEN), base_url=BASE) as second:
        assert wait(second, run, "done", "failed")["report"]


def test_the_end_of_the_server_does_not_undo_what_is_over(tmp_path):
    folder = tmp_path / "runs"
    app = create_app(folder, TOKEN)
    with TestClient(app, base_url=BASE) as client:
        over = start(client)
        wait(client, over, "done")
        by_hand = start(client, max_candidates=None, max_time=120, functions=["add", "mul"], columns=["a"])
        wait(client, by_hand, "running")
        client.post(f"/runs/{by_hand}/stop", headers=HEADERS)
        wait(client, by_hand, "stopped", "done")
        open_one = start(client, max_candidates=None, max_time=120, functions=["add", "mul"], columns=["a"])
        wait(client, open_one, "running")
    app.state.jobs.close(60)
    states = [Run.open(folder / name).description()["state"] for name in (over, by_hand, open_one)]
    assert states[0] == "done" and states[1] in ("stopped", "done") and states[2] in ("queued", "done")
