"""What routes share: the request's run, table and body, and what is answered, as plain data."""

from __future__ import annotations

import re
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from gmeql.report.network import SIGNS
from gmeql.runs.classes import MOST_CLASSES
from gmeql.runs.folder import Run
from gmeql.runs.steering import standard_functions
from gmeql.tables.read import Table
from gmeql.web.jobs import Jobs, Uploads

MAX_LISTED_COLUMNS = 500
NOT_ON_PAGE = ("text-as-missing", "skip-bad-rows", "keep-codes", "sheet", "delimiter", "decimal", "encoding", "header")
"""Options of `gmeql fit` that say how to read a table."""
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
"""A report brings its own scripts and is shown inside the page, so it has another policy than the pages."""


async def refuse(request: Request, error: Exception) -> Response:
    """What the user can mend: one line."""
    return JSONResponse({"error": on_page(" ".join(str(error).split()))}, 422)


def on_page(message: str) -> str:
    """A message in which options that the page has no field for are those of the command line.

    >>> on_page("row 3 is short; leave such rows out with --skip-bad-rows, or choose another --target")
    'row 3 is short; leave such rows out with gmeql fit --skip-bad-rows, or choose another target'
    """
    return re.sub(rf"--(?={'|'.join(NOT_ON_PAGE)})", "gmeql fit --", message).replace("--target", "target")


async def refuse_plainly(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


def render(request: Request, template: str, **values: Any) -> Response:
    return HTMLResponse(request.app.state.templates.get_template(template).render(**values))


def jobs_of(request: Request) -> Jobs:
    """The runs behind the page."""
    jobs: Jobs = request.app.state.jobs
    return jobs


def find_run(request: Request) -> Run:
    run = jobs_of(request).run(request.path_params["name"])
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
        "chosen": description.get("chosen") if state in ("done", "stopped") else None,
        "report": (run.folder / "report.html").is_file() and state in ("done", "stopped"),
    }


def table_record(key: str, table: Table) -> dict[str, Any]:
    return {
        "table": key,
        "source": table.source,
        "rows": len(table.rows),
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "summary": column.summary,
                "explains": column.explains,
                "classes": column.n_different,
            }
            for column in table.columns[:MAX_LISTED_COLUMNS]
        ],
        "most_classes": MOST_CLASSES,
        "notes": [note.message for note in table.notes],
        "preview": [list(row[:MAX_LISTED_COLUMNS]) for row in table.preview],
    }


def find_upload(request: Request, key: Any) -> tuple[str, bytes]:
    uploads: Uploads = request.app.state.uploads
    found = uploads.find(str(key))
    if found is None:
        raise HTTPException(404, "the table is no longer there; drop it again")
    return found
