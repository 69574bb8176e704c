"""The page about a solved differential equation."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from gmeql import solve
from gmeql.differential.solving.solutions import Solutions
from gmeql.differential.solving.text import read_text
from gmeql.report.solution import build


def solved(equation: str, **options) -> Solutions:
    read = read_text(equation, **options)
    budget = {"max_time": None, "max_candidates": 600, "n_jobs": 1, "random_state": 0}
    return solve(read.equations, read.functions, ics=read.ics, domain=read.domain, **budget)


def courses(page: str) -> list[dict]:
    return json.loads(re.search('id="data">(.*?)</script>', page).group(1))["courses"]


def test_a_proven_solution_with_its_exact_form_over_the_numbers():
    page = build(solved("y'' = -2*y", ics="y(0)=0, y'(0)=1"), equation="y'' = -2*y </script>", command="gmeql solve")
    assert "proven: equation and conditions vanish identically" in page and "No closed form" not in page
    assert "<msqrt><mn>2</mn></msqrt>" in page and "How to repeat it" in page
    assert page.count("</script>") == 2 and "default-src &#39;none&#39;" in page
    (course,) = courses(page)
    root = np.sqrt(2)
    for part in (course["points"][0], course["curves"][0]):
        np.testing.assert_allclose(part["y"], np.sin(root * np.array(part["x"])) / root, atol=1e-4)


@pytest.mark.slow  # the same page is written in tests of the command
def test_no_closed_form_is_said_with_the_nearest_formula():
    page = build(solved("y' = x^2 + y^2", ics="y(0)=0", domain="0..1"), equation="y' = x^2 + y^2")
    assert "No closed form was found; the nearest formula" in page and "largest residual" in page and "≈" in page


def test_functions_of_several_variables_are_drawn_at_a_few_values_of_the_further_ones():
    edges = "u(0,y)=y^2, u(1,y)=1+y^2, u(x,0)=x^2, u(x,1)=1+x^2"
    drawn = courses(build(solved("u_xx + u_yy = 4", ics=edges), equation="u_xx + u_yy = 4"))
    assert [course["name"].split(" at ")[0] for course in drawn] == ["u", "u", "u"]
    assert all(course["points"] == [] for course in drawn)
    heights = [float(course["name"].split("y = ")[1]) for course in drawn]
    for height, course in zip(heights, drawn, strict=True):
        curve = course["curves"][0]
        np.testing.assert_allclose(curve["y"], np.array(curve["x"]) ** 2 + height**2, atol=1e-3)


def test_texts_are_escaped():
    page = build(solved("y' = y", ics="y(0)=1"), equation="<b>y' = y", conditions="<i>", command="<u>")
    assert "<b>y" not in page and "<i>" not in page and "<u>" not in page
