"""Differential equations on the page: of motion and of fields from a dropped table, and such as are to be solved."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from gmeql.runs.equations import REPORT, gridded, trajectories
from gmeql.runs.folder import make_folder
from gmeql.runs.settings import ConfigError, split_names
from gmeql.tables.table import Table
from gmeql.web.answers import REPORT_POLICY, render
from gmeql.web.asking import answer, asked, commands_of, joined, names_of, of_table, settings_of, start_command

MOST_TEXT = 2000
FURTHER_PAGE = re.compile(r"report-[1-9][0-9]?\.html")
"""Pages beside the report, one for each formula of several."""


# --- what is asked for -----------------------------------------------------------------------------------------------


async def add_motion(request: Request) -> Response:
    """Find the equations that move the states of a dropped table."""
    content = await asked(request, "table", "time", "states", "order")
    time, states, order = content.get("time"), names_of(content.get("states")), content.get("order", 1)
    if not isinstance(time, str) or not states or time in states:
        raise ConfigError("choose the column of times, and at least one other column that moves")
    if order not in (1, 2):
        raise ConfigError("order must be 1 or 2")

    def check(table: Table) -> None:
        from gmeql.differential.motion.trajectories import check_trajectories

        X, t, _ = trajectories(table, time, states)
        check_trajectories(X, t, names=states)

    options = [f"--time={time}", f"--states={joined(states)}", f"--order={order}"]
    return await of_table(request, content, "motion", "dynamics", "motion of " + ", ".join(states), options, check)


async def add_field(request: Request) -> Response:
    """Find the law of the fields of a dropped table, which has a row for each point and time."""
    content = await asked(request, "table", "time", "space", "fields")
    time, space, fields = content.get("time"), names_of(content.get("space")), names_of(content.get("fields"))
    if not isinstance(time, str) or not space or not fields or len({time, *space, *fields}) < 1 + len(space + fields):
        raise ConfigError("choose the times, the coordinates of space and at least one field, each column once")

    def check(table: Table) -> None:
        from gmeql.differential.fields.grid import read_grid

        u, x, t = gridded(table, space, time, fields)
        read_grid(u, x, t)

    options = [f"--time={time}", f"--space={joined(space)}", f"--fields={joined(fields)}"]
    return await of_table(request, content, "field", "field", "law of " + ", ".join(fields), options, check)


async def add_solution(request: Request) -> Response:
    """Solve an equation that somebody wrote."""
    texts = ("equation", "ics", "domain", "variables", "parameters")
    content = await asked(request, *texts)
    given = {name: content.get(name) or "" for name in texts}
    for name, text in given.items():
        if not isinstance(text, str) or len(text) > MOST_TEXT:
            raise ConfigError(f"{name} must be text of at most {MOST_TEXT} characters")

    def start() -> str:
        from gmeql.differential.solving.reading import read_problem
        from gmeql.differential.solving.text import read_text

        listed = {name: split_names(given[name]) for name in ("variables", "parameters")}
        read_as = read_text(given["equation"], ics=given["ics"], domain=given["domain"], **listed)
        read_problem(
            read_as.equations, read_as.functions, ics=read_as.ics, domain=read_as.domain, parameters=read_as.parameters
        )
        options = [f"--{name}={text}" for name, text in given.items() if text and name != "equation"]
        settings = settings_of(content)
        folder = make_folder("solution", commands_of(request).folder)
        told = {"kind": "solution", "title": given["equation"], "source": given["ics"]}
        return start_command(request, folder, ["solve", *options], settings, told, last=["--", given["equation"]])

    return await answer(start)


# --- what is shown ---------------------------------------------------------------------------------------------------


async def _state(request: Request) -> dict[str, Any]:
    state = await asyncio.to_thread(commands_of(request).state, request.path_params["name"])
    if state is None:
        raise HTTPException(404, "there is no such run")
    return state


async def show_equations(request: Request) -> Response:
    return render(request, "equations.html.j2", run=await _state(request))


async def equations_state(request: Request) -> Response:
    return JSONResponse(await _state(request))


async def stop_equations(request: Request) -> Response:
    state = await _state(request)
    await asyncio.to_thread(commands_of(request).stop, state["name"])
    return JSONResponse({"equations": state["name"]})


async def equations_report(request: Request) -> Response:
    state = await _state(request)
    if not state["report"]:
        raise HTTPException(404, "the report is not written yet")
    page = request.path_params.get("page", REPORT)
    path = commands_of(request).folder / state["name"] / page
    if page != REPORT and not (FURTHER_PAGE.fullmatch(page) and path.is_file()):
        raise HTTPException(404, "there is no such page")
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})


async def equations_model(request: Request) -> Response:
    state = await _state(request)
    if not state["model"]:
        raise HTTPException(404, "there is no such file")
    path = commands_of(request).folder / state["name"] / "model.json"
    return FileResponse(path, media_type="application/json", filename=f"{state['name']}-model.json")
