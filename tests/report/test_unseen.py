"""What a formula promises on unseen rows, in words, and where the page says it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from gmeql import report
from gmeql.formula.bounds import Bounds
from gmeql.report.unseen import UNKNOWN, promise, unseen_text
from gmeql.search.judging.outlook import Outlook
from report_pages import front_for, parsed, training

SURE = Outlook(0.51234, 0.0287, False, 3.0, Bounds(6.96312, 430.1501, True))
POLE = replace(SURE, error=math.inf, standard_error=math.inf, pole=True, bounds=Bounds(-math.inf, math.inf, False))


@pytest.mark.parametrize(
    ("outlook", "error", "certain"),
    [
        (
            SURE,
            "0.512 ± 0.029",
            "It stays between 6.963 and 430.2 while every column stays within its range (guaranteed).",
        ),
        (POLE, "no bound", ""),
        (replace(SURE, bounds=Bounds(0.0, 1.0, False)), "0.512 ± 0.029", ""),
        (replace(SURE, bounds=Bounds(7.5, 7.5, True)), "0.512 ± 0.029", ""),
        (replace(SURE, standard_error=0.0, error=0.25), "0.25", promise(SURE)),
        (replace(SURE, standard_error=1e-17, error=0.25), "0.25", promise(SURE)),
        (None, UNKNOWN, ""),
    ],
)
def test_error_and_promise_in_words(outlook, error, certain):
    assert unseen_text(outlook) == error and promise(outlook) == certain


def test_the_page_says_it_beside_the_training_error():
    data = training()
    front = front_for(data)
    front = replace(front, members=(replace(front[0], outlook=POLE), *front[1:-1], replace(front[-1], outlook=SURE)))
    page = report.build(front=front, selected=len(front) - 1, training=data)
    assert page.count("0.512 ± 0.029") == 3 and promise(SURE) in page and "unseen rows may lie at a pole" in page
    members = json.loads(parsed(page).scripts[0])["members"]
    assert members[-1]["outlook"]["error"] == SURE.error and members[0]["outlook"]["error"] is None
    assert members[1]["outlook"] is None and f'<td role="cell" class="number">{UNKNOWN}</td>' in page
