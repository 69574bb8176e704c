"""DSR's numbers and tokens."""

import pytest

from gmeql.evaluation.baselines.dsr import DSRConfig
from gmeql.evaluation.baselines.dsr.config import library_of


def test_the_tokens_are_functions_then_variables_then_the_constant():
    library = library_of(DSRConfig(functions=("add", "sin")), 2)
    assert library.names == ("add", "sin", "x0", "x1", "const") and library.arity == (2, 1, 0, 0, 0)
    assert (library.first_variable, library.constant, library.empty) == (2, 4, 5)
    assert library_of(DSRConfig(functions=("add",), use_constants=False), 1).constant == -1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"functions": ("sum",)}, "one or two arguments"),
        ({"functions": ("sin",)}, "at least one of two arguments"),
        ({"min_length": 40}, "min_length <= max_length"),
        ({"risk": 0.0}, "risk"),
        ({"constants": "gpu"}, "'auto', 'device' or 'cpu'"),
    ],
)
def test_bad_numbers_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        DSRConfig(**changes)
