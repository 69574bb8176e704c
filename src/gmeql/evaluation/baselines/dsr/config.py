"""Numbers of DSR and their sources; the tokens that expressions are written in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gmeql.formula.operators import get_operator

PAPER_FUNCTIONS = ("add", "sub", "mul", "div", "sin", "cos", "sqrt", "square", "cube", "pow4", "pow5", "pow6")
"""The GMEQL paper's elementary functions: every truth b1-b8 fits into 30 tokens."""
NGUYEN_FUNCTIONS = ("add", "sub", "mul", "div", "sin", "cos", "exp", "log")
"""The function set of the Nguyen benchmarks in Petersen et al."""
PAPER_SAMPLES = 2_000_000
"""Expressions of one run in the published configuration."""


@dataclass(frozen=True)
class DSRConfig:
    """Numbers of the method; sources in brackets."""

    functions: tuple[str, ...] = PAPER_FUNCTIONS
    use_constants: bool = True
    batch_size: int = 1000  # [paper, Table 4]
    risk: float = 0.05  # [paper: epsilon]
    learning_rate: float = 5e-4  # [paper]
    entropy_weight: float = 0.03  # [published configuration; paper: 0.005 without decay]
    entropy_decay: float = 0.7  # [published configuration, Landajuela et al. 2021: the bonus fades along the text]
    uniform_arity: bool = True  # [published configuration: prior that levels the number of tokens per arity]
    soft_length: tuple[float, float] | None = (10.0, 5.0)  # [published configuration: preferred length and its spread]
    hidden_units: int = 32  # [published configuration: LSTM, one layer, zeros]
    min_length: int = 4  # [paper]
    max_length: int = 30  # [paper]
    max_constants: int = 6  # [published configuration: 3; see above]
    fit_steps: int = 8  # Levenberg-Marquardt steps of an expression
    fit_rows: int = 100  # rows that fit the constants on a device
    constants: str = "auto"
    stop_below: float = 1e-10  # relative RMSE, after the refit in double precision, that ends a run
    check_every: int = 10  # batches between looks at the clock and points of the curve

    def __post_init__(self) -> None:
        for name in self.functions:
            if get_operator(name).arity not in (1, 2):
                raise ValueError(f"functions must take one or two arguments, {name!r} does not")
        if not any(get_operator(name).arity == 2 for name in self.functions):
            raise ValueError("functions must hold at least one of two arguments, such as 'add'")
        if not 1 <= self.min_length <= self.max_length:
            raise ValueError(f"need 1 <= min_length <= max_length, got {self.min_length} and {self.max_length}")
        if not 0 < self.risk <= 1:
            raise ValueError(f"risk must lie in (0, 1], got {self.risk}")
        if self.constants not in ("auto", "device", "cpu"):
            raise ValueError(f"constants must be 'auto', 'device' or 'cpu', got {self.constants!r}")


class Library(NamedTuple):
    """Token numbers: functions, then variables, then the constant; `empty` stands for no parent or no sibling."""

    names: tuple[str, ...]
    arity: tuple[int, ...]
    variables: int

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def empty(self) -> int:
        return len(self.names)

    @property
    def constant(self) -> int:
        return self.names.index("const") if "const" in self.names else -1

    @property
    def first_variable(self) -> int:
        return self.names.index("x0")


def library_of(config: DSRConfig, variables: int) -> Library:
    functions = tuple(get_operator(name).name for name in config.functions)
    names = functions + tuple(f"x{v}" for v in range(variables)) + (("const",) if config.use_constants else ())
    arity = tuple(get_operator(name).arity for name in functions) + (0,) * (len(names) - len(functions))
    return Library(names, arity, variables)
