"""The source of a chunk: a block's memory is as large as said, random numbers are JAX's."""

import ctypes

import jax
import jax.numpy as jnp
import numpy as np
from host_cuda import library, needs_compiler
from two_stage_runs import SMALL, TINY

from gmeql.paper import concrete
from gmeql.paper.two_stage import TwoStageConfig
from gmeql.paper.two_stage.cuda.source import KNOB_ORDER, RUN, block_bytes, source
from gmeql.paper.two_stage.state import Knobs

CONFIG = TwoStageConfig(**SMALL).shape
CALLS = """
extern "C" int block_size() { return sizeof(Block); }
extern "C" int run_size() { return sizeof(Run); }
extern "C" float number(unsigned int seed, int step, int place) { return uniform_at(key_of(seed, step), place); }
"""


@needs_compiler
def test_memory_is_laid_out_alike_on_both_sides():
    built = library(source(TINY, CONFIG) + CALLS)
    assert built.block_size() == block_bytes(TINY, CONFIG)
    assert built.run_size() == RUN.itemsize


@needs_compiler
def test_random_numbers_are_those_of_jax():
    built = library(source(TINY, CONFIG) + CALLS)
    built.number.restype = ctypes.c_float
    for seed, step in ((0, 0), (7, 41), (2**32 - 1, 53_999)):
        key = jax.random.fold_in(jax.random.key(np.uint32(seed), impl="threefry2x32"), step + 1)
        expected = concrete.uniform(jax.random.bits(key, (20,), jnp.uint32), "float32")
        found = [built.number(ctypes.c_uint(seed), step, place) for place in range(20)]
        np.testing.assert_array_equal(np.float32(found), np.asarray(expected))


def test_every_knob_but_the_weights_of_ranks_has_a_place():
    assert set(KNOB_ORDER) | {"rank_weights"} == set(Knobs._fields)
    text = source(TINY, CONFIG)
    assert all(f"constexpr int {name.upper()} = {place};" in text for place, name in enumerate(KNOB_ORDER))
