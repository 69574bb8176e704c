"""Differential equations on the page: of motion and of fields from a dropped table, and such as are to be solved."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from gmeql.model.storage import write_atomic
from gmeql.runs.equations import REPORT, gridded, trajectories
from gmeql.runs.folder import default_folder
from gmeql.runs.settings import ConfigError, resolve, split_names
from gmeql.tables.read import TableError, read
from gmeql.tables.table import Table
from gmeql.web.answers import REPORT_POLICY, body_of, find_upload, render
from gmeql.web.commands import Commands

MOST_TEXT = 2000
DEFAULT_SECONDS = 60.0


def commands_of(request: Request) -> Commands:
    """The commands behind the page."""
    found: Commands = request.app.state.commands
    return found


# --- what is asked for -----------------------------------------------------------------------------------------------


async def add_motion(request: Request) -> Response:
    """Find the equations that move the states of a dropped table."""
    content = await _asked(request, "table", "time", "states", "order")
    time, states, order = content.get("time"), _names(content.get("states")), content.get("order", 1)
    if not isinstance(time, str) or not states or time in states:
        raise ConfigError("choose the column of times, and at least one other column that moves")
    if order not in (1, 2):
        raise ConfigError("order must be 1 or 2")

    def check(table: Table) -> None:
        from gmeql.differential.motion.trajectories import check_trajectories

        X, t, _ = trajectories(table, time, states)
        check_trajectories(X, t, names=states)

    options = [f"--time={time}", f"--states={_joined(states)}", f"--order={order}"]
    return await _of_table(request, content, "motion", "dynamics", "motion of " + ", ".join(states), options, check)


async def add_field(request: Request) -> Response:
    """Find the law of the fields of a dropped table, which has a row for each point and time."""
    content = await _asked(request, "table", "time", "space", "fields")
    time, space, fields = content.get("time"), _names(content.get("space")), _names(content.get("fields"))
    if not isinstance(time, str) or not space or not fields or len({time, *space, *fields}) < 1 + len(space + fields):
        raise ConfigError("choose the times, the coordinates of space and at least one field, each column once")

    def check(table: Table) -> None:
        from gmeql.differential.fields.grid import read_grid

        u, x, t = gridded(table, space, time, fields)
        read_grid(u, x, t)

    options = [f"--time={time}", f"--space={_joined(space)}", f"--fields={_joined(fields)}"]
    return await _of_table(request, content, "field", "field", "law of " + ", ".join(fields), options, check)


async def add_solution(request: Request) -> Response:
    """Solve an equation that somebody wrote."""
    texts = ("equation", "ics", "domain", "variables", "parameters")
    content = await _asked(request, *texts)
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
        folder = default_folder("solution", commands_of(request).folder)
        told = {"kind": "solution", "title": given["equation"], "source": given["ics"]}
        return _start(request, folder, ["solve", *options], content, told, last=["--", given["equation"]])

    return await _answer(start)


async def _asked(request: Request, *known: str) -> dict[str, Any]:
    """The request's settings, none of them unknown."""
    content = await body_of(request)
    known = (*known, "max_time", "seed")
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]!r:.60}; known are {', '.join(known)}")
    return content


def _names(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise ConfigError("columns must be a list of names")
    return given


def _joined(names: Sequence[str]) -> str:
    """Names as the command line takes them: between commas, in quotes where they hold one."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


async def _of_table(
    request: Request,
    content: dict[str, Any],
    kind: str,
    command: str,
    title: str,
    options: list[str],
    check: Callable[[Table], None],
) -> Response:
    """Run `command` on a copy of the dropped table, once `check` lets it pass."""
    name, data = find_upload(request, content.get("table", ""))

    def start() -> str:
        table = read(data, name=name)
        check(table)
        folder = default_folder(Path(table.source).name, commands_of(request).folder)
        copy = folder / "table" / name
        copy.parent.mkdir(parents=True)
        write_atomic(copy, data)
        told = {"kind": kind, "title": title, "source": table.source}
        return _start(request, folder, [command, *options], content, told, last=["--", str(copy)])

    return await _answer(start)


def _start(
    request: Request,
    folder: Path,
    arguments: list[str],
    content: dict[str, Any],
    told: dict[str, str],
    *,
    last: list[str],
) -> str:
    given = {key: content[key] for key in ("max_time", "seed") if content.get(key) is not None}
    settings = resolve(given, environment={})
    seconds = settings.max_time or DEFAULT_SECONDS
    budget = [f"--max-time={seconds:g}", f"--seed={settings.seed}", f"--out={folder}", "--json"]
    commands_of(request).start(folder, [*arguments, *budget, *last], max_time=seconds, **told)
    return folder.name


async def _answer(start: Callable[[], str]) -> Response:
    try:
        return JSONResponse({"equations": await asyncio.to_thread(start)}, 201)
    except (ConfigError, TableError):
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None


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
    path = commands_of(request).folder / state["name"] / REPORT
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})


async def equations_model(request: Request) -> Response:
    state = await _state(request)
    if not state["model"]:
        raise HTTPException(404, "there is no such file")
    path = commands_of(request).folder / state["name"] / "model.json"
    return FileResponse(path, media_type="application/json", filename=f"{state['name']}-model.json")
