"""Who saw a formula first is noted, and what is searched for again follows from that; the figures take hours."""

import json

import numpy as np
from programs import program

from gmeql.search.config import SearchConfig
from gmeql.search.search import Search

methods = program("benchmarks/methods.py")


def record(**changes):
    usual = {
        "suite": "s",
        "problem": "p",
        "seed": 0,
        "left_out": "",
        "solved": True,
        "seen_by": "rational",
        "tables": 1,
    }
    return usual | changes


def test_a_formula_is_searched_for_again_without_who_saw_it():
    assert methods.without(record()) == [("s", "p", 0, "rational")]
    assert methods.without(record(seen_by="islands", tables=2)) == [("s", "p", 0, "symmetries")]
    assert methods.without(record(tables=3)) == [("s", "p", 0, "rational"), ("s", "p", 0, "symmetries")]
    for nothing in (record(solved=False), record(left_out="rational"), record(seen_by="islands")):
        assert methods.without(nothing) == []


def test_what_methods_lose_together_is_searched_for_without_each():
    both = "roots,sections"
    assert methods.without(record(), both) == [("s", "p", 0, both)]
    assert methods.without(record(left_out=both), both) == []
    assert methods.without(record(left_out=both, solved=False), both) == [
        ("s", "p", 0, "roots"),
        ("s", "p", 0, "sections"),
    ]
    assert methods.without(record(left_out="roots", solved=False), both) == []


def test_the_method_that_saw_the_formula_is_noted():
    X = np.random.default_rng(0).uniform(1, 3, (100, 2))
    fraction, sine = (X[:, 0] ** 2 + 1) / (X[:, 1] + X[:, 0]), np.sin(2.7 * X[:, 0] ** 2) + np.log(X[:, 1] + 0.37)
    seen = []
    for y, methods_asked in ((fraction, None), (sine, ())):
        with methods.noted() as noted:
            config = SearchConfig(max_candidates=300, n_jobs=1, symmetries=False, direct=methods_asked)
            for _ in Search(X, y, config=config).run():
                pass
        seen.append(noted.by)
    assert seen == ["rational", "islands"]


def test_the_report_counts_what_is_lost(tmp_path, capsys):
    records = [
        record(), record(problem="q"), record(problem="r", solved=False, seen_by=""),
        record(left_out="rational"), record(problem="q", left_out="rational", solved=False),
    ]  # fmt: skip
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    methods.report(methods.read(path))
    printed = capsys.readouterr().out
    assert "2 of 3 solved" in printed and "| rational | 2 | 2 | 1 |" in printed
