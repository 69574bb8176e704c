"""Training data: when two are the same."""

from __future__ import annotations

from gmeql.tables.read import read
from malformed_tables import GOOD, utf16


def test_fingerprint_follows_the_numbers_not_the_file():
    first = read(GOOD.encode()).select("y")
    same = read(utf16(GOOD.replace(",", ";"))).select("y")
    other = read(GOOD.replace("6", "7").encode()).select("y")
    assert first.fingerprint == same.fingerprint != other.fingerprint
