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

from gmeql.model.files.storage import StorageError
from gmeql.runs.settings import ConfigError
from gmeql.tables.cells import TableError
from gmeql.web import classes, equations, pages, predicting, runs
from gmeql.web.answers import refuse, refuse_plainly
from gmeql.web.commands import Commands
from gmeql.web.guard import Guard
from gmeql.web.jobs import Jobs, Uploads


def create_app(folder: str | Path, token: str) -> Starlette:
    """The ASGI application for the runs under `folder`, open to whoever holds `token`."""
    jobs, uploads, commands = Jobs(Path(folder)), Uploads(Path(folder)), Commands(Path(folder))
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
        await asyncio.gather(asyncio.to_thread(jobs.close), asyncio.to_thread(commands.close))

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
            Route("/runs/{name}/predict", predicting.predict_run, methods=["POST"]),
            Route("/runs/{name}/report", runs.run_report),
            Route("/runs/{name}/files/{file}", runs.run_file),
            Route("/motions", equations.add_motion, methods=["POST"]),
            Route("/fields", equations.add_field, methods=["POST"]),
            Route("/solutions", equations.add_solution, methods=["POST"]),
            Route("/classes", classes.add_classes, methods=["POST"]),
            Route("/equations/{name}", equations.show_equations),
            Route("/equations/{name}/state", equations.equations_state),
            Route("/equations/{name}/stop", equations.stop_equations, methods=["POST"]),
            Route("/equations/{name}/report", equations.equations_report),
            Route("/equations/{name}/files/model.json", equations.equations_model),
            Route("/equations/{name}/{page}", equations.equations_report),
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
    app.state.commands = commands
    return app
