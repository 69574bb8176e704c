"""Runs wait for each other, uploads make room."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gmeql.model.files.storage import StorageError
from gmeql.runs.folder import Run, make_folder
from gmeql.runs.settings import FitSettings
from gmeql.tables.read import read
from gmeql.web import jobs
from web_client import HEADERS, start, wait


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


def test_old_uploads_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "MAX_UPLOADS", 3)
    uploads = jobs.Uploads(tmp_path)
    keys = [uploads.add(b"a,y\n1,2\n", f"../../t{i}.csv") for i in range(5)]
    assert len(list((tmp_path / "uploads").iterdir())) == 3
    assert uploads.find(keys[-1]) == ("t4.csv", b"a,y\n1,2\n") and uploads.find("../x") is None


def submitted(queue: jobs.Jobs) -> Run:
    return queue.submit(read(b"a,y\n1,2\n2,3\n3,5\n", name="t.csv").select("y"), FitSettings(target="y", max_time=1.0))


def test_the_queue_keeps_its_order_and_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "MAX_QUEUED", 2)
    queue = jobs.Jobs(tmp_path)  # not started: nothing leaves the queue
    first, second = submitted(queue), submitted(queue)
    assert [queue.position(run.folder.name) for run in (first, second)] == [1, 2]
    with pytest.raises(ValueError, match="2 runs are waiting"):
        submitted(queue)
    with pytest.raises(ValueError, match="waiting or running already"):
        queue.resume(first, first.settings())
    queue.stop(first.folder.name)
    assert queue.position(first.folder.name) is None and queue.position(second.folder.name) == 1
    assert first.description()["state"] == "stopped"
    assert queue.job("none") is None and queue.run("../x") is None
    assert {run.folder for run in queue.runs()} == {first.folder, second.folder}


def test_a_run_that_fails_says_why_and_the_next_one_runs(tmp_path, monkeypatch):
    seen = []

    def execute(run, **options):
        seen.append(run.folder.name)
        if len(seen) == 1:
            raise ZeroDivisionError("over\ntwo lines")
        run.update(state="done")

    monkeypatch.setattr(jobs, "execute", execute)
    queue = jobs.Jobs(tmp_path)
    first, second = submitted(queue), submitted(queue)
    for _ in range(2):
        queue._execute(queue._queue.popleft())
    assert first.description()["state"] == "failed" and first.description()["reason"] == "over two lines"
    assert second.description()["state"] == "done" and seen == [first.folder.name, second.folder.name]


def test_a_run_whose_folder_is_gone_does_not_end_the_queue(tmp_path, monkeypatch):
    def execute(run, **options):
        shutil.rmtree(run.folder)
        raise StorageError("its folder is gone")

    monkeypatch.setattr(jobs, "execute", execute)
    queue = jobs.Jobs(tmp_path)
    submitted(queue)
    queue._execute(queue._queue.popleft())  # in the thread that works all of them off: an error here would be its last
    assert queue.runs() == []


def test_two_that_ask_at_once_get_folders_of_their_own(tmp_path):
    together = threading.Barrier(8)

    def ask(_: int):
        together.wait()
        return make_folder("a.csv", tmp_path)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(ask, range(8)))
    assert len(set(made)) == 8 and all(folder.is_dir() for folder in made)
