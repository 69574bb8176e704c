"""The page's routes. Each one reads the request, asks `Jobs` or `Uploads`, and answers; no state of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gmeql.model.storage import StorageError
from gmeql.report import asset
from gmeql.report.network import SIGNS
from gmeql.runs.execute import standard_functions
from gmeql.runs.folder import Run
from gmeql.runs.settings import ConfigError, FitSettings, resolve
from gmeql.runs.steering import Steering, check_functions
from gmeql.tables.read import Table, TableError, Training, read
from gmeql.web.guard import MAX_BODY_BYTES, Guard
from gmeql.web.jobs import Jobs, Uploads

ASSETS = Path(__file__).parent / "assets"
POLL_SECONDS = 0.15
KEEPALIVE_SECONDS = 15.0
MAX_LISTED_COLUMNS = 500
SETTABLE = (
    "target",
    "columns",
    "functions",
    "max_time",
    "max_candidates",
    "seed",
    "pin",
    "forbid",
    "selection",
    "max_complexity",
)
DOWNLOADS = {"model.json": "application/json", "front.csv": "text/csv", "progress.jsonl": "application/x-ndjson"}


def create_app(folder: str | Path, token: str) -> Starlette:
    """The ASGI application for the runs under `folder`, open to whoever holds `token`."""
    jobs, uploads = Jobs(Path(folder)), Uploads(Path(folder))
    templates = Environment(
        loader=ChoiceLoader([PackageLoader("gmeql.web", "assets"), PackageLoader("gmeql.report", "assets")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        jobs.start()
        yield
        await asyncio.to_thread(jobs.close)

    app = Starlette(
        routes=[
            Route("/", home),
            Route("/static/{name}", static),
            Route("/tables", add_table, methods=["POST"]),
            Route("/tables/{key}", show_table),
            Route("/runs", list_runs),
            Route("/runs", add_run, methods=["POST"]),
            Route("/runs/{name}", show_run),
            Route("/runs/{name}/state", run_state),
            Route("/runs/{name}/events", run_events),
            Route("/runs/{name}/stop", stop_run, methods=["POST"]),
            Route("/runs/{name}/resume", resume_run, methods=["POST"]),
            Route("/runs/{name}/steer", steer_run, methods=["POST"]),
            Route("/runs/{name}/report", run_report),
            Route("/runs/{name}/files/{file}", run_file),
        ],
        middleware=[Middleware(Guard, token=token)],
        exception_handlers={
            ConfigError: refuse,
            TableError: refuse,
            StorageError: refuse,
            HTTPException: refuse_plainly,
        },
        lifespan=lifespan,
    )
    app.state.jobs, app.state.uploads, app.state.templates = jobs, uploads, templates
    return app


# ------------------------------------------------------------------------------------------------- helpers


async def refuse(request: Request, error: Exception) -> Response:
    """What the user can mend: one line."""
    return JSONResponse({"error": " ".join(str(error).split())}, 422)


async def refuse_plainly(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


def render(request: Request, template: str, **values: Any) -> Response:
    return HTMLResponse(request.app.state.templates.get_template(template).render(**values))


def find_run(request: Request) -> Run:
    run = request.app.state.jobs.run(request.path_params["name"])
    if run is None:
        raise HTTPException(404, "there is no such run")
    return run


async def body_of(request: Request) -> dict[str, Any]:
    try:
        content = await request.json()
    except (ValueError, UnicodeDecodeError):
        raise HTTPException(400, "the request is not JSON") from None
    if not isinstance(content, dict):
        raise HTTPException(400, "the request is not a JSON object")
    return content


def function_choices() -> list[tuple[str, str]]:
    """(name, sign) of the functions a search uses by default."""
    return [(name, SIGNS.get(name, name)) for name in standard_functions()]


def snapshot(jobs: Jobs, run: Run) -> dict[str, Any]:
    """Everything the page shows of a run that is not finished, and the state of one that is."""
    description = run.description()
    job = jobs.job(run.folder.name)
    latest = job.latest if job is not None and job.latest is not None else run.last_progress()
    position = jobs.position(run.folder.name)
    state = "running" if position == 0 else description["state"]  # not over before its report is written
    return {
        "name": run.folder.name,
        "state": state,
        "reason": description["reason"],
        "position": position,
        "target": description["data"]["target"],
        "source": description["data"]["source"],
        "rows": description["data"]["rows"],
        "columns": description["data"]["columns"][:MAX_LISTED_COLUMNS],
        "created": description["created"],
        "settings": description["settings"],
        "max_time": description["settings"].get("max_time"),
        "stopping": bool(job is not None and job.stop.is_set()),
        "progress": latest,
        "report": (run.folder / "report.html").is_file() and state in ("done", "stopped"),
    }


def table_record(key: str, table: Table) -> dict[str, Any]:
    return {
        "table": key,
        "source": table.source,
        "rows": len(table.rows),
        "columns": [
            {"name": column.name, "kind": column.kind, "summary": column.summary}
            for column in table.columns[:MAX_LISTED_COLUMNS]
        ],
        "notes": [note.message for note in table.notes],
        "preview": [list(row[:MAX_LISTED_COLUMNS]) for row in table.preview],
    }


# ------------------------------------------------------------------------------------------------- pages and tables


async def home(request: Request) -> Response:
    return render(
        request, "home.html.j2", limit=MAX_BODY_BYTES >> 20, functions=await asyncio.to_thread(function_choices)
    )


async def static(request: Request) -> Response:
    name = request.path_params["name"]
    kinds = {
        "style.css": "text/css",
        "live.css": "text/css",
        "charts.js": "text/javascript",
        "home.js": "text/javascript",
        "run.js": "text/javascript",
    }
    if name not in kinds:
        raise HTTPException(404, "there is no such file")
    own = ASSETS / name
    return Response(own.read_text(encoding="utf-8") if own.exists() else asset(name), media_type=kinds[name])


async def add_table(request: Request) -> Response:
    """The body is the file; its name stands in ?name=."""
    data = await request.body()
    name = request.query_params.get("name", "table")[:200]
    table = await asyncio.to_thread(read, data, name=name)
    return JSONResponse(table_record(request.app.state.uploads.add(data, name), table))


async def show_table(request: Request) -> Response:
    key = request.path_params["key"]
    name, data = find_upload(request, key)
    return JSONResponse(table_record(key, await asyncio.to_thread(read, data, name=name)))


def find_upload(request: Request, key: Any) -> tuple[str, bytes]:
    found = request.app.state.uploads.find(str(key))
    if found is None:
        raise HTTPException(404, "the table is no longer there; drop it again")
    return found


# ------------------------------------------------------------------------------------------------- runs


async def list_runs(request: Request) -> Response:
    jobs: Jobs = request.app.state.jobs

    def collect() -> list[dict[str, Any]]:
        found = []
        for run in jobs.runs()[:200]:
            state = snapshot(jobs, run)
            best = (state["progress"] or {}).get("best") or {}
            keys = ("name", "state", "reason", "position", "target", "source", "created")
            found.append({key: state[key] for key in keys} | {"formula": best.get("formula"), "loss": best.get("loss")})
        return found

    return JSONResponse(await asyncio.to_thread(collect))


async def add_run(request: Request) -> Response:
    content = await body_of(request)
    name, data = find_upload(request, content.get("table", ""))
    given = {key: content[key] for key in SETTABLE if content.get(key) not in (None, [], "")}
    settings = resolve(given, environment={})
    target = settings.target
    if target is None:
        raise ConfigError("choose the column to explain")

    def submit() -> Run:
        table = read(data, name=name)
        training = table.select(target, **settings.select_options())
        check(settings, training)
        return request.app.state.jobs.submit(training, settings)

    try:
        run = await asyncio.to_thread(submit)
    except (ConfigError, TableError, StorageError):
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return JSONResponse({"run": run.folder.name}, 201)


def check(settings: FitSettings, training: Training) -> None:
    """What cannot run is refused now, not when its turn comes."""
    check_functions(settings)
    steering = Steering.of(settings, training.names)
    steering.extend(training)
    steering.functions(settings.functions, standard_functions())


async def show_run(request: Request) -> Response:
    run = find_run(request)
    state = await asyncio.to_thread(snapshot, request.app.state.jobs, run)
    functions = await asyncio.to_thread(function_choices)
    return render(
        request, "run.html.j2", run=state, functions=functions, forbidden=set(state["settings"].get("forbid", []))
    )


async def run_state(request: Request) -> Response:
    run = find_run(request)
    return JSONResponse(await asyncio.to_thread(snapshot, request.app.state.jobs, run))


async def run_events(request: Request) -> Response:
    """Server-sent events: a snapshot at once, then one whenever something changed, until the run has ended."""
    run = find_run(request)
    jobs: Jobs = request.app.state.jobs

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
    request.app.state.jobs.stop(run.folder.name)
    return JSONResponse({"run": run.folder.name})


async def resume_run(request: Request) -> Response:
    """Go on with the same search and a new budget."""
    run = find_run(request)
    content = await body_of(request)
    settings = run.with_more_time(run.settings(), seconds_of(content))
    try:
        await asyncio.to_thread(request.app.state.jobs.resume, run, settings)
    except StorageError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return JSONResponse({"run": run.folder.name})


async def steer_run(request: Request) -> Response:
    """A new run on the same data with parts pinned or forbidden, that keeps what this one knows."""
    run = find_run(request)
    content = await body_of(request)
    changes = resolve({key: content.get(key) for key in ("pin", "forbid") if content.get(key)}, environment={})
    before = run.settings()
    seconds = seconds_of(content) or before.max_time
    settings = replace(before, pin=changes.pin, forbid=changes.forbid, max_time=seconds)

    def submit() -> Run:
        training = run.training()
        check(settings, training)
        return request.app.state.jobs.submit(training, settings, continues=run.folder.name)

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
    """The report, with its own content security policy instead of the pages'."""
    run = find_run(request)
    path = run.folder / "report.html"
    if not path.is_file():
        raise HTTPException(404, "the report is not written yet")
    scripts = "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
    policy = f"default-src 'none'; {scripts}; frame-ancestors 'self'"
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": policy})


async def run_file(request: Request) -> Response:
    run = find_run(request)
    name = request.path_params["file"]
    if name not in DOWNLOADS or not (run.folder / name).is_file():
        raise HTTPException(404, "there is no such file")
    return FileResponse(run.folder / name, media_type=DOWNLOADS[name], filename=f"{run.folder.name}-{name}")
