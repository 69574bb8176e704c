"""The same column in another unit: left out and told, and nothing else is."""

from __future__ import annotations

import numpy as np

from gmeql.tables.cells import Note
from gmeql.tables.multiples import without_multiples
from gmeql.tables.read import read


def kept(*columns: np.ndarray) -> list[int]:
    return without_multiples(np.column_stack(columns).astype(float), [f"c{k}" for k in range(len(columns))], [])


def test_multiples_within_their_rounding(rng: np.random.Generator) -> None:
    length = rng.uniform(1, 10, 60).round(3)
    assert kept(length, (3.28084 * length).round(3)) == [0]
    assert kept(length, 3.28084 * length) == [0] and kept(length, -length / 7) == [0] and kept(length, length) == [0]
    assert kept(length, length * (1 + 0.01 * rng.standard_normal(60)).round(4)) == [0, 1]
    assert kept(length, length + 273.15) == [0, 1] and kept(length, length**1.01) == [0, 1]
    assert kept(np.zeros(60), length) == [0, 1]


def test_few_values_and_coarse_ones_are_no_multiples(rng: np.random.Generator) -> None:
    kind = rng.integers(0, 3, 60)
    assert kept(kind, 2 * kind) == [0, 1]
    coarse = rng.uniform(0, 12, 60)
    assert kept(coarse.round(0), (coarse / 2).round(0)) == [0, 1]


def test_a_table_says_which_it_leaves_out_unless_somebody_named_them(tmp_path, rng: np.random.Generator) -> None:
    metres = rng.uniform(1, 10, 30).round(3)
    lines = [f"{m},{(3.28084 * m):.3f},{(2 * m):.4f}" for m in metres]
    path = tmp_path / "t.csv"
    path.write_text("m,ft,y\n" + "\n".join(f"{line}1" for line in lines) + "\n")
    training = read(path).select("y")
    assert training.names == ("m",)
    notes: list[Note] = [note for note in training.notes if note.code == "multiple_columns"]
    assert len(notes) == 1 and "column 'ft' is 3.28" in notes[0].message and "times 'm': left out" in notes[0].message
    assert read(path).select("y", columns=["m", "ft"]).names == ("m", "ft")
