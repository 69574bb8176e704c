"""What the comparison of devices makes of its times; the times themselves need a card."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from programs import program

from gmeql.search.config import SearchConfig

accelerator = program("benchmarks/accelerator.py")


def test_the_hardest_take_longest_and_among_the_unsolved_the_most_candidates():
    problems = ["a", "b", "c", "d", "e"]
    found = [(3.0, 10), (math.inf, 5), (0.1, 99), (math.inf, 7), (2.0, 1)]
    assert accelerator.longest(problems, found, 3) == ["a", "b", "d"]
    assert accelerator.longest(problems, found, 1) == ["d"]


def test_the_hardest_by_rule_are_solved_and_take_all_cores_longest(monkeypatch, capsys):
    assert accelerator.hardest_of([3.0, math.inf, 1.0, 9.0], 2, unsolved=False) == [0, 3]
    assert accelerator.hardest_of([3.0, math.inf, 1.0, 9.0], 2, unsolved=True) == [1, 3]
    problems = [SimpleNamespace(name=name) for name in "abcde"]
    times = {"cores": [3.0, math.inf, 1.0], "gpu": [1.0, 2.0]}
    asked = []

    class HereAndNow:
        def __init__(self, **_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def map(self, function, *cells):
            return [(float(problem.name in "bcd"), 0) for problem in cells[0]]

    def solved_by(device, problems, max_time, _):
        asked.append((device, "".join(problem.name for problem in problems)))
        return times[device]

    monkeypatch.setattr(accelerator, "ProcessPoolExecutor", HereAndNow)
    monkeypatch.setattr(accelerator, "chosen_problems", lambda _: problems)
    monkeypatch.setattr(accelerator, "solved_by", solved_by)
    accelerator.hardest(
        SimpleNamespace(
            problems=None, devices=["gpu", "cores"], max_time=20.0, asked=3, most=2, settings={}, unsolved=False
        )
    )
    assert asked == [("cores", "bcd"), ("gpu", "bd")]
    assert '"times_sooner": 1.333' in capsys.readouterr().out


def test_how_many_times_sooner_is_a_bound_where_the_slower_one_was_stopped():
    assert accelerator.times_sooner([1.0, 2.0, math.inf], [4.0, 12.0, math.inf], 20.0) == {
        "times_sooner": 6.0, "at_least": False,
    }  # fmt: skip
    stopped = accelerator.times_sooner([1.0, 2.0, math.inf], [4.0, math.inf, math.inf], 10.0)
    assert stopped == {"times_sooner": 5.0, "at_least": True}
    assert accelerator.times_sooner([math.inf] * 3, [1.0] * 3, 10.0)["times_sooner"] == 0.0


def test_who_is_slower_is_told_by_pairs():
    cells = [("b1", 0), ("b2", 0), ("b1", 1)]
    found = accelerator.slower(cells, [0.1, 1.0, 0.2], [0.2, 0.5, 0.6])
    assert found["runs"] == 3 and found["where"] == "b1 seed 1" and found["longer_than_0.2"] == 1
    assert found["median_longer"] == pytest.approx(0.1) and found["most_longer"] == pytest.approx(0.4)


def test_tables_are_searched_as_the_regressor_would():
    """A target brought to size 1 by a power of two has other constants, which methods for plain ones do not see."""
    X = np.linspace(1.0, 3.0, 60)[:, None]
    found = accelerator.searched(X, 1000 * X[:, 0] ** 2, SearchConfig(max_candidates=500, n_jobs=1, device="cpu"))
    assert found["reason"] == "exact" and found["best"] == "1000*x1**2" and found["card_taken"] is None


def test_sizes_of_tables_are_read():
    assert accelerator.sizes("300x5,1000000x10") == [(300, 5), (1_000_000, 10)]


def test_cores_get_just_the_time_after_which_they_have_lost(monkeypatch, capsys):
    problems = [SimpleNamespace(name=name) for name in ("p", "q", "r")]
    asked = []

    def solved_by(device, given, max_time, arguments):
        asked.append((device, [problem.name for problem in given], max_time))
        return [1.0, 2.0, math.inf] if device == "gpu" else [0.5, math.inf, math.inf]

    monkeypatch.setattr(accelerator, "load_suite", lambda path: problems)
    monkeypatch.setattr(accelerator, "solved_by", solved_by)
    arguments = SimpleNamespace(
        cases=["some.json"], problems="p,q,r", devices=["gpu", "cores"], max_time=20.0, times=5.0, most=10
    )
    accelerator.hardest(arguments)
    assert asked == [("gpu", ["p", "q", "r"], 20.0), ("cores", ["p", "q", "r"], 10.0)]
    assert '"times_sooner": 5.0, "at_least": true' in capsys.readouterr().out
