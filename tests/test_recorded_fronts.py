"""Searches end where they ended when they were recorded: every formula, loss and count, to the last digit.

`data/recorded_fronts.json` holds what each search of `recorded_searches.py` returned: the members of its front with
their constants in full, the member that was chosen, why the search ended and after how many candidates. Code that is
only rearranged changes none of it.

What is compared depends on the machine, which stands at the head of the file (the processor and its features, the
versions of all libraries that compute):

- on the machine of the record every number must be equal to the last digit, and every count and reason with it;
- elsewhere, because another processor rounds differently and that sends a search another way, the chosen formula must
  have the recorded structure and complexity, and its constants must agree to a relative 1e-6 (5e-2 where they are
  trained in single precision, see `LESS_NEAR`). A warning says what differs.

On any machine, what must not change a result is held to the last digit against the plain run: the number of threads,
workers in other processes, a stop in the middle.

    python tests/test_recorded_fronts.py --record

writes the file anew. That is right for a change that is meant to change what searches return, and whose commit says
so; or to move the record to another machine or to other libraries, with a source that passes on the old ones. It is
never right because a change that should have left the results alone did not.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from recorded_searches import CASES, LONG, RUNS, SMALL, Outcome, ending, fit_options, polynomial, postfix

from gmeql import fit_formula

RECORD = Path(__file__).with_name("data") / "recorded_fronts.json"
NEAR = 1e-6
"""Relative difference of constants that is allowed on another machine than the record's."""
LESS_NEAR = {"paper": 5e-2}
"""The same where constants are trained in single precision: roundings add up over hundreds of steps."""


# --- the machine ------------------------------------------------------------------------------------------------------


@cache
def machine() -> dict[str, str]:
    """What decides how the last digit is rounded: the processor, and the libraries that compute."""
    import jax
    import jaxlib
    import llvmlite
    import numba
    import scipy.linalg
    from llvmlite import binding

    features = numba.config.CPU_FEATURES
    features = binding.get_host_cpu_features().flatten() if features is None else features
    features += repr(np.show_config(mode="dicts")["SIMD Extensions"])
    blas = {
        f"{lib['internal_api']} {lib['version']} {lib.get('architecture')}"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    }
    return {
        "cpu": numba.config.CPU_NAME or binding.get_host_cpu_name(),
        "cpu_features": hashlib.sha256(features.encode()).hexdigest()[:16],
        "system": f"{platform.system()} {platform.machine()} {' '.join(platform.libc_ver())}".strip(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas": ", ".join(sorted(blas)),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "llvm": ".".join(map(str, binding.llvm_version_info)),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "jax_backend": jax.default_backend(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


# --- the comparison ---------------------------------------------------------------------------------------------------


def differences(found: Outcome, recorded: Outcome, *, same_machine: bool, near: float = NEAR) -> list[str]:
    """In words, where an outcome is not what was recorded; empty where the rule of this file is kept."""
    if same_machine:
        return unequal(found, recorded)
    if len(found["targets"]) != len(recorded["targets"]):
        return [f"{len(found['targets'])} targets, recorded were {len(recorded['targets'])}"]
    problems = []
    for number, pair in enumerate(zip(found["targets"], recorded["targets"], strict=True)):
        now, then = (ended["front"][ended["chosen"]] for ended in pair)
        if not is_near(now, then, near):
            problems.append(f"target {number} chose {now}, recorded was {then}")
    return problems


def unequal(found: Any, recorded: Any, where: str = "") -> list[str]:
    """Every place where two JSON values differ, signs of zeros and kinds of numbers included."""
    if isinstance(found, dict) and isinstance(recorded, dict) and found.keys() == recorded.keys():
        return [line for key in recorded for line in unequal(found[key], recorded[key], f"{where} {key}")]
    if isinstance(found, list) and isinstance(recorded, list) and len(found) == len(recorded):
        pairs = enumerate(zip(found, recorded, strict=True))
        return [line for number, pair in pairs for line in unequal(*pair, f"{where}[{number}]")]
    texts = json.dumps(found), json.dumps(recorded)
    return [] if texts[0] == texts[1] else [f"{where.strip()}: {texts[0]}, recorded was {texts[1]}"]


def is_near(now: dict[str, Any], then: dict[str, Any], near: float = NEAR) -> bool:
    """Whether two members are the same formula with nearly the same constants."""
    words = now["formula"], then["formula"]
    if now["complexity"] != then["complexity"] or len(words[0]) != len(words[1]):
        return False
    for a, b in zip(*words, strict=True):
        if isinstance(a, str) or isinstance(b, str):
            if a != b:
                return False
        elif not math.isclose(a, b, rel_tol=near):
            return False
    return True


# --- tests ------------------------------------------------------------------------------------------------------------


@cache
def record() -> dict[str, Any]:
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def same_machine() -> bool:
    """Which of the two rules holds here."""
    other = unequal(machine(), record()["machine"])
    if other:
        warnings.warn(f"not the machine of the record, so only chosen formulas are compared: {other}", stacklevel=1)
    return not other


@pytest.mark.parametrize(
    ("name", "how"),
    [pytest.param(*run, marks=[pytest.mark.slow] if run in LONG else []) for run in RUNS],
    ids=lambda part: part.replace(" ", "-"),
)
def test_a_search_ends_where_it_did(name: str, how: str, same_machine: bool) -> None:
    found = ending(name, how)
    near = LESS_NEAR.get(name, NEAR)
    problems = differences(found, record()["cases"][name], same_machine=same_machine, near=near)
    assert not problems, "\n".join(problems)
    if how != "plain" and not same_machine:  # there, the plain run is held to the same record to the last digit
        assert unequal(found, ending(name, "plain")) == []


def test_the_formula_in_one_line_is_the_recorded_one(same_machine: bool) -> None:
    expression = fit_formula(*polynomial(), **fit_options("polynomial"))
    ended = record()["cases"]["polynomial"]["targets"][0]
    chosen = ended["front"][ended["chosen"]]
    found = {"complexity": expression.complexity, "formula": postfix(expression)}
    assert is_near(found, chosen)
    assert not same_machine or found["formula"] == chosen["formula"]


def test_the_searches_go_where_they_are_meant_to() -> None:
    """Past the first stage to smaller tables, through several generations, to the end of a budget and before it."""
    cases = record()["cases"]
    assert cases.keys() == set(CASES)
    assert cases["symmetries of a product"]["views"] > 1 < cases["symmetries of a bell"]["views"]
    assert cases["huber"]["islands"] >= 3 * SMALL["few_islands"]
    assert len(cases["two targets"]["targets"]) == 2
    reasons = {ended["reason"] for case in cases.values() for ended in case["targets"]}
    assert {"exact", "max_candidates"} <= reasons


def test_the_comparison_sees_a_last_digit_and_allows_it_elsewhere() -> None:
    then = record()["cases"]["noisy"]

    def changed(change: Callable[[dict[str, Any]], Any]) -> Outcome:
        """The outcome with its chosen member changed."""
        now = json.loads(json.dumps(then))
        change(now["targets"][0]["front"][now["targets"][0]["chosen"]])
        return now

    def scaled(factor: float) -> Outcome:
        def scale(member: dict[str, Any]) -> None:
            member["formula"] = [word * factor if isinstance(word, float) else word for word in member["formula"]]

        return changed(scale)

    digit = changed(lambda member: member.update(loss=math.nextafter(member["loss"], math.inf)))
    assert unequal(digit, then) and not differences(digit, then, same_machine=False)
    assert differences(scaled(1 + 1e-15), then, same_machine=True)
    assert not differences(scaled(1 + 1e-9), then, same_machine=False)
    assert differences(scaled(1 + 1e-5), then, same_machine=False)
    assert differences(changed(lambda member: member["formula"].append("sin/1")), then, same_machine=False)
    assert differences(changed(lambda member: member.update(complexity=0)), then, same_machine=False)
    other_column = changed(
        lambda member: member.update(
            formula=[re.sub("^x1$", "x2", w) if isinstance(w, str) else w for w in member["formula"]]
        )
    )
    assert differences(other_column, then, same_machine=False)
    assert differences(then | {"candidates": then["candidates"] + 1}, then, same_machine=True)
    assert differences(then | {"targets": []}, then, same_machine=False)
    assert unequal(-0.0, 0.0) and unequal(1, 1.0) and not unequal(then, then)


# --- as a script ------------------------------------------------------------------------------------------------------


def layout(value: Any, indent: str = "") -> str:
    """JSON with one line to each member of a front, so that a change shows as the lines it changed."""
    parts = list(value.values() if isinstance(value, dict) else value)
    if not any(isinstance(part, dict | list) for part in parts) or "formula" in value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    lines = [layout(part, inner) if isinstance(part, dict | list) else json.dumps(part) for part in parts]
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {line}" for key, line in zip(value, lines, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(inner + line for line in lines) + f"\n{indent}{closing}"


def main(arguments: list[str]) -> None:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # as tests/conftest.py has it
    if arguments == ["--record"]:
        cases = {name: ending(name, "plain") for name in CASES}
        RECORD.write_text(layout({"machine": machine(), "cases": cases}) + "\n", encoding="utf-8")
    else:
        raise SystemExit("usage: python tests/test_recorded_fronts.py --record")


if __name__ == "__main__":
    main(sys.argv[1:])
