"""The page as an application: its routes, its errors, its queue of runs. Routes have no state of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from gmeql.model.storage import StorageError
from gmeql.runs.settings import ConfigError
from gmeql.tables.cells import TableError
from gmeql.web import motions, pages, runs
from gmeql.web.answers import refuse, refuse_plainly
from gmeql.web.guard import Guard
from gmeql.web.jobs import Jobs, Uploads


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
            Route("/", pages.home),
            Route("/static/{name}", pages.static),
            Route("/tables", pages.add_table, methods=["POST"]),
            Route("/tables/{key}", pages.show_table),
            Route("/runs", runs.list_runs),
            Route("/runs", runs.add_run, methods=["POST"]),
            Route("/runs/{name}", runs.show_run),
            Route("/runs/{name}/state", runs.run_state),
            Route("/runs/{name}/events", runs.run_events),
            Route("/runs/{name}/stop", runs.stop_run, methods=["POST"]),
            Route("/runs/{name}/resume", runs.resume_run, methods=["POST"]),
            Route("/runs/{name}/steer", runs.steer_run, methods=["POST"]),
            Route("/runs/{name}/report", runs.run_report),
            Route("/runs/{name}/files/{file}", runs.run_file),
            Route("/motions", motions.add_motion, methods=["POST"]),
            Route("/motions/{name}", motions.show_motion),
            Route("/motions/{name}/report", motions.motion_report),
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
    app.state.motions = motions.Motions(Path(folder))
    return app
