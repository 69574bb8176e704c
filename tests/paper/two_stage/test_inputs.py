"""Bad input of a run is refused by name, before anything is compiled."""

import numpy as np
import pytest

from gmeql.paper.two_stage import TwoStageConfig, run
from gmeql.paper.two_stage.chunks import COMPILATIONS
from two_stage_runs import SMALL, TINY, data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": [["sin", "sinus"]]}, "layer 1.*unknown operator 'sinus'"),
        ({"architecture": []}, "at least one layer"),
        ({"architecture": [["sum"]], "y": np.zeros((12, 0))}, "at least one column"),
        (
            {"X": np.where(np.arange(24).reshape(12, 2) == 5, np.nan, 1.0)},
            "X must be finite, got nan in row 2, column 1",
        ),
        ({"y": np.arange(11.0)}, "one row for each of the 12 rows"),
        ({"y": np.full(12, 3.0)}, "y is constant"),
        ({"X": np.ones((1, 2)), "y": np.ones(1)}, "at least 2 rows, got 1"),
        ({"X": np.ones(12)}, "X must have shape"),
        ({"X": data()[0] * 1e300}, "must fit into float32"),
        ({"seeds": []}, "seeds must be one or more"),
        ({"seeds": [-1]}, "seeds must be one or more"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"seeds": [1, 2], "config": [TwoStageConfig()]}, "one per seed"),
        ({"seeds": [1, 2], "config": [TwoStageConfig(), TwoStageConfig(capacity=3)]}, "capacity must be the same"),
    ],
)
def test_bad_input_is_refused_before_any_compilation(change, message):
    X, y = data()
    arguments = {"architecture": TINY, "X": X, "y": y[:, 0], "seeds": [0], "config": TwoStageConfig(**SMALL)} | change
    before = COMPILATIONS[0]
    with pytest.raises(ValueError, match=message):
        run(arguments.pop("architecture"), arguments.pop("X"), arguments.pop("y"), **arguments)
    assert COMPILATIONS[0] == before
