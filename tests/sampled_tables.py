"""Random tables for tests of the paper's opponents."""

import numpy as np


def uniform_table(seed, columns, rows, low=-1.0, high=1.0):
    return np.random.default_rng(seed).uniform(low, high, (rows, columns))
