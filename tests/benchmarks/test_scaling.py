"""The measurements of growth: what is computed from points, not the points."""

import pytest
from programs import program


def load(name):
    return program(f"benchmarks/{name}.py")


scaling = load("scaling")


def point(size, seconds, error=""):
    return {
        "axis": "rows",
        "size": size,
        "seconds": seconds,
        "search_seconds": seconds,
        "memory_mb": 100,
        "error": error,
    }


def test_the_exponent_is_that_of_the_last_three_points():
    records = [point(n, 5.0) for n in (1, 10)] + [point(n, 3e-4 * n**1.5) for n in (10**2, 10**3, 10**4)]
    assert scaling.exponent(records) == pytest.approx(1.5)
    assert scaling.exponent(records[:1]) is None


def test_points_that_failed_stand_in_the_table_and_not_in_the_exponent():
    records = [point(100, 1.0), point(1000, 10.0), {**point(10_000, 0.0), "error": "TimeoutExpired"}]
    assert scaling.exponent(records) == pytest.approx(1.0)
    text = scaling.table(records)
    assert "TimeoutExpired" in text and "| 1.00 |" in text


def test_the_size_of_a_network_is_its_nodes():
    assert scaling.size_of("network", {"width": 2}) == sum(map(len, scaling.network(2)))


def test_start_up_times_become_a_table():
    rows = [{"what": "import gmeql", "seconds": 0.1, "worst": 0.2, "runs": 3}]
    assert "| import gmeql | 0.10 | 0.20 | 3 |" in load("startup").table(rows)
