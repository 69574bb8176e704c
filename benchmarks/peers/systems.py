"""The systems of the comparison: one table, one folder of environments.

Each peer lives in a virtual environment of its own, so that none decides the versions of another. Where environments
cannot be made (no network), `bundle` takes ready packages from folders instead: FOLDER/<system>/ goes on the path of
the running interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
CACHE = Path(os.environ.get("GMEQL_PEERS", Path.home() / ".cache" / "gmeql" / "peers"))


@dataclass(frozen=True)
class System:
    """A system, how it is installed, and what its numbers mean.

    `first` is installed before `packages`, for those that need it to build. `seconds` says what the time of a solution
    is: a system that cannot stop when it is done is charged only until it found the formula that it returned, where it
    tells.
    """

    name: str
    label: str
    packages: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    settings: str = ""
    seconds: str = "the whole fit"

    @property
    def runner(self) -> Path:
        return HERE / "runners" / f"run_{self.name}.py"

    @property
    def environment(self) -> Path:
        return CACHE / self.name


SYSTEMS = {
    system.name: system
    for system in (
        System("gmeql", "gmeql", settings="defaults", seconds="the whole fit, which ends when a formula is exact"),
        System(
            "operon",
            "Operon (pyoperon)",
            packages=("pyoperon", "numpy", "scikit-learn", "pandas"),
            settings="objectives R² and length, 10 Levenberg-Marquardt steps, model of least squared error",
            seconds="the whole fit; stopped by its callback once a model's relative error is below 1e-6",
        ),
        System(
            "rils_rols",
            "RILS-ROLS",
            packages=("rils-rols",),
            first=("pybind11", "setuptools", "wheel"),
            settings="its SRBench entry: at most 1,000,000 fits, complexity 50; its functions are fixed",
            seconds="until it found the formula it returns (its own figure); it goes on to the end of its time",
        ),
        System(
            "bingo",
            "Bingo",
            packages=("bingo-nasa", "mpich"),
            settings="its SRBench entry: population 500, stack 24, age-fitness",
            seconds="the whole fit, which ends at a squared error of 1e-16",
        ),
        System(
            "gplearn",
            "gplearn",
            packages=("gplearn",),
            settings="its SRBench entry: population 1,000, parsimony 0.001, run generation by generation",
            seconds="the whole fit; stopped at a mean absolute error of 1e-9 std(y)",
        ),
    )
}


@dataclass(frozen=True)
class Interpreter:
    """How a system's runner is started."""

    python: str
    path: tuple[str, ...] = ()


def interpreter(system: System, *, bundle: Path | None = None) -> Interpreter:
    """The interpreter of a system that is installed (or in the bundle)."""
    if not system.packages:
        return Interpreter(sys.executable, (str(SOURCE),))
    if bundle is not None:
        folder = bundle.resolve() / system.name  # runners work in folders of their own
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder} is not there; put the packages of {system.name} into it")
        return Interpreter(sys.executable, (str(folder),))
    python = system.environment / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"{system.name} is not installed; run: python benchmarks/peers/run.py install")
    return Interpreter(str(python))


def install(system: System, *, upgrade: bool = False) -> None:
    """Make the system's environment; one that is complete already is left alone."""
    done = system.environment / "installed.txt"
    if not system.packages or (done.exists() and not upgrade):
        return
    venv.create(system.environment, with_pip=True, clear=True)
    pip = [str(system.environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if system.first:
        subprocess.run([*pip, *system.first], check=True)
    isolation = ["--no-build-isolation"] if system.first else []
    subprocess.run([*pip, *isolation, *system.packages], check=True)
    frozen = subprocess.run([*pip[:3], "freeze"], check=True, capture_output=True, text=True).stdout
    done.write_text(frozen)
