"""Units from text and from the objects of other libraries."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from gmeql.knowledge.dimensions import NUMBER, Dimension
from gmeql.knowledge.units import MAX_LENGTH, read_unit


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("J", "kg*m**2/s**2"),
        ("N m", "J"),
        ("W", "J/s"),
        ("V", "W/A"),
        ("ohm", "V/A"),
        ("F", "C/V"),
        ("T", "Wb/m^2"),
        ("H", "Wb/A"),
        ("Pa", "N/m2"),
        ("km/h", "m s-1"),
        ("µm", "m"),
        ("kilometers", "m"),
        ("g", "kg"),
        ("min", "s"),
        ("L", "m**3"),
        ("kJ/(mol*K)", "J/mol/K"),
        ("m**(1/2)", "m^0.5"),
        ("m**-1", "1/m"),
        ("(m/s)**2", "J/kg"),
        ("rad", "1"),
        ("", "1"),
        ("[person]/km**2", "[person]/m**2"),
    ],
)
def test_texts_of_one_dimension(text: str, same: str) -> None:
    assert read_unit(text) == read_unit(same)


def test_units_of_different_dimension_differ() -> None:
    assert len({read_unit(text) for text in ("kg", "m", "s", "A", "K", "mol", "cd", "[cow]", "1")}) == 9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kgg", "did you mean kg"),
        ("degC", "zero of its own"),
        ("3 m", "no numbers but 1"),
        ("m**", "an exponent"),
        ("(m", "not closed"),
        ("m)", "out of place"),
        ("m**x", "an exponent"),
        ("m$", "cannot be read"),
        ("m**999", "too large"),
        ("m*" * MAX_LENGTH, "longer than"),
        ("__import__('os')", "cannot be read"),
    ],
)
def test_what_is_no_unit_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(ValueError, match="unit .*"):
        read_unit(text)
    with pytest.raises(ValueError) as caught:
        read_unit(text)
    assert says in str(caught.value)


def test_objects_of_pint_by_their_dimensionality() -> None:
    unit = SimpleNamespace(dimensionality={"[mass]": 1.0, "[length]": 2.0, "[time]": -2.0, "[currency]": 1})
    assert read_unit(unit) == read_unit("J") * read_unit("[currency]")


def test_objects_of_astropy_by_their_bases() -> None:
    joule = SimpleNamespace(bases=["m", "kg", "s"], powers=[2.0, 1.0, -2.0])
    unit = SimpleNamespace(decompose=lambda: joule)
    assert read_unit(unit) == read_unit("J")
    assert read_unit(SimpleNamespace(unit=unit, decompose=None)) == read_unit("J")


def test_pint_itself() -> None:
    pint = pytest.importorskip("pint")
    assert read_unit(pint.UnitRegistry()("kJ/mol").units) == read_unit("kJ/mol")


def test_astropy_itself() -> None:
    units = pytest.importorskip("astropy.units")
    assert read_unit(units.kJ / units.mol) == read_unit("kJ/mol")


@pytest.mark.parametrize("unit", [None, 1, 1.0, "1", Dimension()])
def test_pure_numbers(unit: Any) -> None:
    assert read_unit(unit) == NUMBER


def test_exponents_by_name() -> None:
    assert read_unit({"m": 1, "s": -2}) == read_unit("m/s**2")
    assert read_unit({"m": Fraction(1, 3)}) == read_unit("m**(1/3)")
    with pytest.raises(ValueError, match="exponent"):
        read_unit({"m": "2"})


def test_other_objects_are_refused() -> None:
    with pytest.raises(ValueError, match="of type list"):
        read_unit(["m"])
