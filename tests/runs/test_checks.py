"""What cannot run is refused before a folder is made, in the words of the flag that asks for it."""

from __future__ import annotations

import pytest

from gmeql.runs.checks import check_fit
from gmeql.runs.settings import ConfigError, FitSettings
from gmeql.tables.read import read

ROWS = "".join(f"{i},{i * i % 7},{i % 3 + 1},{2 * i + i * i % 7}\n" for i in range(1, 13))
TABLE = read(f"a,b,w,y\n{ROWS}".encode(), name="t.csv")


def check(weights: str | None = None, **settings) -> None:
    check_fit(FitSettings(target="y", weights=weights, **settings), TABLE.select("y", weights=weights))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"functions": ("sinn",)}, "--functions: unknown operator"),
        ({"functions": ()}, "--functions: none is given"),
        ({"loss": "logistic"}, r"--loss logistic needs a target that is between 0 \(no\) and 1 \(yes\); 'y' is not"),
        ({"forbid": ("add",), "functions": ("add",)}, "no function is left"),
        ({"pin": ("log(a - 100)",)}, "no finite value in row 2"),
        ({"pin": ("q",)}, "there is no column 'q'"),
        ({"method": "paper", "functions": ("sin",)}, "--functions: --method paper"),
        ({"method": "released", "forbid": ("sin",)}, "--forbid: --method released"),
        ({"method": "paper", "loss": "huber"}, "--loss: --method paper has a loss of its own"),
        ({"method": "released", "max_complexity": 9}, "--max-complexity: --method released knows no such bound"),
        ({"constant_units": ("m",)}, "--constant-units needs --units"),
        ({"unit_check": "soft"}, "--unit-check needs --units"),
        ({"method": "paper", "weights": "w"}, "--weights: --method paper"),
    ],
)
def test_what_cannot_run_is_refused(settings, words) -> None:
    with pytest.raises(ConfigError, match=words):
        check(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"functions": ("+", "sin"), "forbid": ("cos",), "pin": ("a*b",), "weights": "w"},
        {"method": "paper", "pin": ("a*b",), "forbid": ("a*b",)},
        {"selection": "validation"},
    ],
)
def test_what_can_run_is_let_through(settings) -> None:
    check(**settings)


def test_validation_needs_rows_to_judge_by() -> None:
    few = read(b"a,y\n1,2\n2,3\n3,5\n", name="few.csv").select("y")
    with pytest.raises(ConfigError, match="at least 8 rows, few.csv has 3"):
        check_fit(FitSettings(selection="validation"), few)


def test_an_accelerator_that_is_not_there_is_refused(monkeypatch) -> None:
    from gmeql.fitters.cuda import driver

    monkeypatch.setattr(driver, "why_not", lambda: "no CUDA device was found")
    with pytest.raises(ConfigError, match="--device gpu: no CUDA device was found; use --device auto or cpu"):
        check(device="gpu")
    monkeypatch.setattr(driver, "why_not", lambda: "")
    check(device="gpu")
