"""The start page, its files, and tables that are dropped on it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gmeql.knowledge.knowledge import UNIT_CHECKS
from gmeql.model.pareto.rules import RULES
from gmeql.report import asset
from gmeql.search.losses.losses import LOSSES
from gmeql.tables.read import read
from gmeql.web.answers import find_upload, function_choices, render, table_record
from gmeql.web.guard import MAX_BODY_BYTES

ASSETS = Path(__file__).parent / "assets"


async def home(request: Request) -> Response:
    functions = await asyncio.to_thread(function_choices)
    return render(
        request,
        "home.html.j2",
        limit=MAX_BODY_BYTES >> 20,
        functions=functions,
        losses={n: loss.description for n, loss in LOSSES.items()},
        rules=RULES,
        unit_checks=UNIT_CHECKS,
    )


async def static(request: Request) -> Response:
    name = request.path_params["name"]
    kinds = {
        "style.css": "text/css",
        "live.css": "text/css",
        "charts.js": "text/javascript",
        "home.js": "text/javascript",
        "run.js": "text/javascript",
        "live.js": "text/javascript",
        "equations.js": "text/javascript",
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
