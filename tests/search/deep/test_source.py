"""The kernels' numbers and records are those that Python goes by."""

from __future__ import annotations

import numpy as np

from gmeql.search.deep.source import BLOCK, HIT, LOOK, OPERATOR_BITS, SIDE_BITS, SMALL, SUM, deep_source, mixed
from gmeql.search.direct.middle import kernels


def test_the_hash_of_codes_is_that_of_the_kernels() -> None:
    codes = np.array([1, 2**40 + 17, 2**63 + 5], np.uint64)
    for code, found in zip(codes.tolist(), mixed(codes).tolist(), strict=True):
        key = code * 0x9E3779B97F4A7C15 % 2**64
        assert found == key ^ key >> 29


def test_the_source_has_every_number() -> None:
    source = deep_source()
    for name in ("ROWS", "PROBES", "SIDE_BITS", "LEAST_LEFT", "DROWNED", "PLUS", "TANH", "MOST_WAITS"):
        assert f" {name} = " in source
    assert f" DROWNED = {kernels.DROWNED!r};" in source and f" UNDER = {kernels.UNDER};" in source


def test_records_are_laid_out_as_a_compiler_does() -> None:
    assert BLOCK.itemsize == 56 and BLOCK.fields["opcode"][1] == 24
    assert [record.itemsize for record in (SMALL, LOOK, HIT, SUM)] == [80, 48, 32, 64]
    assert 2 * SIDE_BITS + OPERATOR_BITS < 60  # and a cost
