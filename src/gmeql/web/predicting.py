"""Values of a run's formula for a new table, as `gmeql predict` tells them: by the chosen formula, or averaged."""

from __future__ import annotations

import asyncio
import csv
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gmeql.model.fit.kernels import same_packages
from gmeql.runs.folder import Run
from gmeql.runs.settings import ConfigError
from gmeql.web.answers import body_of, find_run, find_upload

PREDICTIONS = "predictions.csv"
AVERAGED = 10
"""Formulas that an average is taken over: those behind them have hardly any weight."""
SHOWN = 6
"""Rows that the page shows."""
PATIENCE = 300.0


async def predict_run(request: Request) -> Response:
    """The first rows of the predictions for a dropped table, and what there is to say; all of them lie in the folder."""
    run = find_run(request)
    content = await body_of(request)
    average = content.get("average", False)
    if set(content) - {"table", "average"} or not isinstance(average, bool):
        raise ConfigError("give table, and average as true or false")
    if not (run.folder / "model.json").is_file():
        raise HTTPException(404, "the model is not written yet")
    name, data = find_upload(request, content.get("table", ""))
    return JSONResponse(await asyncio.to_thread(_predicted, run, name, data, average))


def _predicted(run: Run, name: str, data: bytes, average: bool) -> dict[str, Any]:
    out = run.folder / PREDICTIONS
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / name
        table.write_bytes(data)
        options = ["--append", f"--out={out}", *([f"--average={AVERAGED}"] if average else [])]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "gmeql", "predict", *options, "--", str(run.folder), str(table)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", timeout=PATIENCE,
                env=same_packages(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ConfigError(f"it took longer than {PATIENCE:g} s; try gmeql predict on the command line") from None
        said = [line.replace(str(table), name) for line in done.stderr.splitlines() if line.strip()]
    if done.returncode:
        raise ConfigError(said[-1].removeprefix("gmeql: ") if said else f"it ended with code {done.returncode}")
    with open(out, encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    return {"columns": head, "rows": rows[:SHOWN], "n_rows": len(rows), "notes": said}
