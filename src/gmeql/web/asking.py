"""Commands that somebody asks the page for: settings read, the table copied, the command started."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gmeql.model.files.storage import write_atomic
from gmeql.runs.folder import make_folder
from gmeql.runs.settings import ConfigError, FitSettings, resolve
from gmeql.tables.read import TableError, read
from gmeql.tables.table import Table
from gmeql.web.answers import body_of, find_upload
from gmeql.web.commands import Commands

DEFAULT_SECONDS = 60.0


def commands_of(request: Request) -> Commands:
    """The commands behind the page."""
    found: Commands = request.app.state.commands
    return found


async def asked(request: Request, *known: str) -> dict[str, Any]:
    """The request's settings, none of them unknown."""
    content = await body_of(request)
    known = (*known, "max_time", "seed")
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]!r:.60}; known are {', '.join(known)}")
    return content


def names_of(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise ConfigError("columns must be a list of names")
    return given


def joined(names: Sequence[str]) -> str:
    """Names as the command line takes them: between commas, in quotes where they hold one."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


async def of_table(
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
        settings = settings_of(content)
        folder = make_folder(Path(table.source).name, commands_of(request).folder)
        copy = folder / "table" / name
        copy.parent.mkdir()
        write_atomic(copy, data)
        told = {"kind": kind, "title": title, "source": table.source}
        return start_command(request, folder, [command, *options], settings, told, last=["--", str(copy)])

    return await answer(start)


def settings_of(content: dict[str, Any]) -> FitSettings:
    """Budget and seed that are asked for."""
    given = {key: content[key] for key in ("max_time", "seed") if content.get(key) is not None}
    return resolve(given, environment={})


def start_command(
    request: Request,
    folder: Path,
    arguments: list[str],
    settings: FitSettings,
    told: dict[str, str],
    *,
    last: list[str],
) -> str:
    seconds = settings.max_time or DEFAULT_SECONDS
    budget = [f"--max-time={seconds:g}", f"--seed={settings.seed}", f"--out={folder}", "--json"]
    commands_of(request).start(folder, [*arguments, *budget, *last], max_time=seconds, **told)
    return folder.name


async def answer(start: Callable[[], str]) -> Response:
    try:
        return JSONResponse({"equations": await asyncio.to_thread(start)}, 201)
    except (ConfigError, TableError):
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
