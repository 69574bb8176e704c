"""Tables that are time series: the page finds the equations that move them, one table at a time."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response

from gmeql.runs.folder import default_folder
from gmeql.runs.motion import read_record, trajectories, write_motion, write_record
from gmeql.runs.settings import ConfigError, resolve
from gmeql.tables.read import read
from gmeql.web.answers import body_of, find_upload, render
from gmeql.web.jobs import SAFE_NAME

GIVEN = ("table", "time", "states", "order", "max_time", "seed")
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)


class Motions:
    """Fits of laws of motion under one folder; the lock lets one run at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self.known: set[str] = set()
        self.threads: list[threading.Thread] = []

    def wait(self) -> None:
        """Until every fit that was started is done."""
        for thread in self.threads:
            thread.join()

    def record(self, name: str) -> dict[str, Any] | None:
        """The record of a fit; one that an earlier server left unfinished has failed."""
        record = read_record(self.folder / name) if SAFE_NAME.fullmatch(name) else None
        if record is not None and record["state"] == "running" and name not in self.known:
            record |= {"state": "failed", "reason": "the server ended before it was done; start it again"}
        return record

    def listed(self) -> list[dict[str, Any]]:
        """Every fit, as the list of runs shows it."""
        found = []
        for path in self.folder.iterdir():
            record = self.record(path.name)
            if record is not None:
                found.append(
                    {key: record[key] for key in ("state", "reason", "source", "created")}
                    | {"name": path.name, "link": f"/motions/{path.name}", "position": None, "loss": None}
                    | {"target": "motion of " + ", ".join(record["states"]), "formula": "; ".join(record["equations"])}
                )
        return found

    def start(self, folder: Path, table: Any, options: dict[str, Any]) -> None:
        """Fit in a thread of its own; what comes of it stands in the folder."""
        self.known.add(folder.name)
        base = {
            "state": "running",
            "reason": "",
            "states": options["states"],
            "source": table.source,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "equations": [],
        }
        write_record(folder, base)
        self.threads.append(threading.Thread(target=self._fit, args=(folder, table, options, base), daemon=True))
        self.threads[-1].start()

    def _fit(self, folder: Path, table: Any, options: dict[str, Any], base: dict[str, Any]) -> None:
        from gmeql import GMEQLDynamics
        from gmeql.differential.motion.exports import lines

        with self.lock:
            try:
                X, t, _ = trajectories(table, options["time"], options["states"])
                model = GMEQLDynamics(
                    options["order"], max_time=options["max_time"], feature_names=options["states"],
                    random_state=options["seed"],
                ).fit(X, t)  # fmt: skip
                write_motion(model, folder, source=table.source, time=options["time"])
                equations = lines(model.columns_, model.equations_)
                write_record(folder, base | {"state": "done", "reason": model.stop_reason_, "equations": equations})
            except Exception as error:  # noqa: BLE001  the page shows it
                reason = " ".join(str(error).split())[:500] or type(error).__name__
                write_record(folder, base | {"state": "failed", "reason": reason})


def motions_of(request: Request) -> Motions:
    """The fits behind the page."""
    found: Motions = request.app.state.motions
    return found


async def add_motion(request: Request) -> Response:
    """Find the equations that move the states of a dropped table."""
    content = await body_of(request)
    name, data = find_upload(request, content.get("table", ""))
    unknown = sorted(set(content) - set(GIVEN))
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]!r:.60}; known are {', '.join(GIVEN)}")
    states, time, order = content.get("states"), content.get("time"), content.get("order", 1)
    if not isinstance(time, str) or not isinstance(states, list) or not states or time in states:
        raise ConfigError("choose the column of times, and at least one other column that moves")
    if not all(isinstance(state, str) for state in states) or order not in (1, 2):
        raise ConfigError("states must be names of columns, and order 1 or 2")
    known = {key: content[key] for key in ("max_time", "seed") if content.get(key) is not None}
    settings = resolve(known, environment={})
    options = {"time": time, "states": states, "order": order, "max_time": settings.max_time or 60.0}

    def start() -> str:
        from gmeql.differential.motion.trajectories import check_trajectories

        table = read(data, name=name)
        X, t, _ = trajectories(table, time, states)
        try:
            check_trajectories(X, t, names=states)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        motions = motions_of(request)
        folder = default_folder(Path(table.source).name, motions.folder)
        motions.start(folder, table, options | {"seed": settings.seed})
        return folder.name

    return JSONResponse({"motion": await asyncio.to_thread(start)}, 201)


async def show_motion(request: Request) -> Response:
    """The report of a fit that is done; before that, a page that asks again."""
    name = request.path_params["name"]
    record = await asyncio.to_thread(motions_of(request).record, name)
    if record is None:
        raise HTTPException(404, "there is no such run")
    if record["state"] == "done":
        return RedirectResponse(f"/motions/{name}/report", 303)
    return render(request, "waiting.html.j2", name=name, motion=record)


async def motion_report(request: Request) -> Response:
    name = request.path_params["name"]
    path = motions_of(request).folder / name / "report.html"
    if not SAFE_NAME.fullmatch(name) or read_record(path.parent) is None or not path.is_file():
        raise HTTPException(404, "the report is not written yet")
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": POLICY})
