"""Runs of the page: made, watched, stopped, continued, steered, looked at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse

from gmeql.model.files.storage import StorageError
from gmeql.runs.checks import check_fit
from gmeql.runs.folder import Run
from gmeql.runs.knowing import training_of
from gmeql.runs.settings import ConfigError, resolve
from gmeql.tables.read import TableError, read
from gmeql.web.answers import (
    REPORT_POLICY,
    body_of,
    find_run,
    find_upload,
    function_choices,
    jobs_of,
    render,
    snapshot,
)
from gmeql.web.asking import commands_of

POLL_SECONDS = 0.15
KEEPALIVE_SECONDS = 15.0
SETTABLE = (
    "target",
    "columns",
    "functions",
    "max_time",
    "max_candidates",
    "seed",
    "pin",
    "forbid",
    "units",
    "constant_units",
    "unit_check",
    "template",
    "constants",
    "guess",
    "constraint",
    "selection",
    "max_complexity",
    "method",
    "loss",
    "device",
    "weights",
    "groups",
    "y_error",
    "x_error",
)
"""Settings of a fit that the page may give; those of reading a table are found when it is dropped."""
DOWNLOADS = {
    "model.json": "application/json",
    "front.csv": "text/csv",
    "groups.csv": "text/csv",
    "alternatives.csv": "text/csv",
    "predictions.csv": "text/csv",
    "progress.jsonl": "application/x-ndjson",
}


async def list_runs(request: Request) -> Response:
    jobs = jobs_of(request)

    def collect() -> list[dict[str, Any]]:
        found = []
        for run in jobs.runs()[:200]:
            state = snapshot(jobs, run)
            best = state["chosen"] or (state["progress"] or {}).get("best") or {}
            shown = {key: state[key] for key in ("name", "state", "reason", "position", "source", "created")}
            shown |= {"title": state["target"], "link": f"/runs/{state['name']}"}
            found.append(shown | {"formula": best.get("formula"), "loss": best.get("loss")})
        found += commands_of(request).listed()
        return sorted(found, key=lambda item: str(item["created"]), reverse=True)

    return JSONResponse(await asyncio.to_thread(collect))


async def add_run(request: Request) -> Response:
    content = await body_of(request)
    name, data = find_upload(request, content.get("table", ""))
    unknown = sorted(set(content) - {"table", *SETTABLE})
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]!r:.60}; known are {', '.join(SETTABLE)}")
    given = {key: content[key] for key in SETTABLE if content.get(key) not in (None, [], "")}
    settings = resolve(given, environment={})
    if settings.target is None:
        raise ConfigError("choose the column to explain")

    def submit() -> Run:
        table = read(data, name=name)
        training = training_of(settings, table)
        check_fit(settings, training)
        return jobs_of(request).submit(training, settings)

    try:
        run = await asyncio.to_thread(submit)
    except (ConfigError, TableError, StorageError):
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return JSONResponse({"run": run.folder.name}, 201)


async def show_run(request: Request) -> Response:
    run = find_run(request)
    state = await asyncio.to_thread(snapshot, jobs_of(request), run)
    functions = await asyncio.to_thread(function_choices)
    return render(
        request, "run.html.j2", run=state, functions=functions, forbidden=set(state["settings"].get("forbid", []))
    )


async def run_state(request: Request) -> Response:
    run = find_run(request)
    return JSONResponse(await asyncio.to_thread(snapshot, jobs_of(request), run))


async def run_events(request: Request) -> Response:
    """Server-sent events: a snapshot at once, then one whenever something changed, until the run has ended."""
    run = find_run(request)
    jobs = jobs_of(request)

    async def events() -> AsyncIterator[str]:
        seen: Any = None
        quiet = 0.0
        while not jobs.closing:
            job = jobs.job(run.folder.name)
            ended = job is None
            mark = (
                (None, None, None) if job is None else (job.version, job.stop.is_set(), jobs.position(run.folder.name))
            )
            if mark != seen:
                seen, quiet = mark, 0.0
                state = await asyncio.to_thread(snapshot, jobs, run)
                yield f"event: state\ndata: {json.dumps(state, ensure_ascii=False)}\n\n"
                if ended and state["state"] not in ("queued", "running"):
                    return
                if ended:
                    seen = None  # between queue and folder: look again
            await asyncio.sleep(POLL_SECONDS)
            quiet += POLL_SECONDS
            if quiet >= KEEPALIVE_SECONDS:
                quiet = 0.0
                yield ": still here\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


async def stop_run(request: Request) -> Response:
    run = find_run(request)
    jobs_of(request).stop(run.folder.name)
    return JSONResponse({"run": run.folder.name})


async def resume_run(request: Request) -> Response:
    """Go on with the same search and a new budget."""
    run = find_run(request)
    content = await body_of(request)
    settings = run.with_more_time(run.settings(), seconds_of(content))
    try:
        await asyncio.to_thread(jobs_of(request).resume, run, settings)
    except StorageError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return JSONResponse({"run": run.folder.name})


async def steer_run(request: Request) -> Response:
    """A new run on the same data with parts pinned or forbidden, or on from a formula, that keeps what this one knows."""
    run = find_run(request)
    content = await body_of(request)
    changes = resolve({key: content.get(key) for key in ("pin", "forbid", "guess") if content.get(key)}, environment={})
    before = run.settings()
    seconds = seconds_of(content) or before.max_time
    settings = replace(
        before, pin=changes.pin, forbid=changes.forbid, guess=changes.guess or before.guess, max_time=seconds
    )

    def submit() -> Run:
        training = run.training()
        check_fit(settings, training)
        return jobs_of(request).submit(training, settings, continues=run.folder.name)

    try:
        continued = await asyncio.to_thread(submit)
    except (ConfigError, StorageError):
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return JSONResponse({"run": continued.folder.name}, 201)


def seconds_of(content: dict[str, Any]) -> float | None:
    if content.get("max_time") is None:
        return None
    return resolve({"max_time": content["max_time"]}, environment={}).max_time


async def run_report(request: Request) -> Response:
    run = find_run(request)
    path = run.folder / "report.html"
    if not path.is_file():
        raise HTTPException(404, "the report is not written yet")
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})


async def run_file(request: Request) -> Response:
    run = find_run(request)
    name = request.path_params["file"]
    if name not in DOWNLOADS or not (run.folder / name).is_file():
        raise HTTPException(404, "there is no such file")
    return FileResponse(run.folder / name, media_type=DOWNLOADS[name], filename=f"{run.folder.name}-{name}")
