"""The CUDA source of a chunk of steps: the files beside this one, behind the network and the numbers of a program."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import numpy as np

from gmeql.network.architecture import Architecture
from gmeql.paper.concrete import PADDED
from gmeql.paper.two_stage.config import TwoStageConfig
from gmeql.paper.two_stage.cuda.network import network_source
from gmeql.paper.two_stage.state import Knobs, item_shape

THREADS = 256
"""Of a block: eight warps, which share 40 instances evenly, and have all registers of a multiprocessor."""
KNOB_ORDER = tuple(name for name in Knobs._fields if name != "rank_weights")
"""Knobs that are one number, in the order in which the kernel finds them."""
FILES = ("random.cuh", "elites.cuh", "step.cuh", "steps.cu")
"""In this order they follow the network."""
POINTERS = tuple(
    """seed step age logits weights online_logits_mean online_logits_square online_weights_mean online_weights_square
offline_mean offline_square elite_losses elite_marks elite_items best_loss best_log_selections best_weights best_step
columns targets knobs rank_weights pool curves""".split()
)
RUN = np.dtype(
    [(name, "u8") for name in POINTERS]
    + [(name, "i4") for name in ("n_seeds", "n_rows", "n_steps", "stage2", "curve_every")],
    align=True,
)
"""`Run` of steps.cu; pointers are whole numbers."""


def block_arrays(architecture: Architecture, config: TwoStageConfig) -> dict[str, tuple[str, int]]:
    """What a block keeps in shared memory: type and length of each array, all of 4-byte numbers.

    Arrays of choices come first, beside weights in fours, so that choices begin at multiples of their number or of four.
    """
    connections, choices = architecture.n_connections, architecture.max_choices
    width, weights, samples = connections * choices, architecture.n_weights, config.samples_per_step
    entries = config.capacity + samples
    floats = {
        "logits": width, "weights": weights, "weights_before": weights,
        "online_logits_mean": width, "online_logits_square": width,
        "online_weights_mean": weights, "online_weights_square": weights,
        "offline_mean": width, "offline_square": width,
        "log_selections": samples * width, "selections": samples * width,
        "by_selection": max(samples, config.offline_batch) * width, "by_weight": samples * weights,
        "label_noise": samples * connections, "losses": entries, "sorted_losses": entries, "best_loss": 1,
        "rank_weights": config.capacity,
        "own_weights": samples * weights if config.elite_weights else 1,
    }  # fmt: skip
    whole = {
        "labels": samples * connections, "choices": samples * connections, "slots": samples,
        "row": entries, "sorted_row": entries, "lost": entries, "enters": 1, "best_step": 1,
        "labelled": samples * connections, "n_labelled": 1, "moved": connections, "drawn": config.offline_batch,
    }  # fmt: skip
    bits = {"marks": 2 * entries, "sorted_marks": 2 * entries, "staying": entries}
    kinds = {"float": floats, "int": whole, "u32": bits}
    return {name: (kind, length) for kind, arrays in kinds.items() for name, length in arrays.items()}


def block_bytes(architecture: Architecture, config: TwoStageConfig) -> int:
    """Shared memory of a block."""
    return 4 * sum(length for _, length in block_arrays(architecture, config).values())


@lru_cache(maxsize=32)
def source(architecture: Architecture, config: TwoStageConfig) -> str:
    """The whole source for a network and the numbers that shape the program."""
    whole = {
        "SAMPLES": config.samples_per_step,
        "OFFLINE": config.offline_batch,
        "ELITES": config.capacity,
        "CONNECTIONS": architecture.n_connections,
        "CHOICES": architecture.max_choices,
        "WEIGHTS": architecture.n_weights,
        "VARIABLES": architecture.n_variables,
        "OUTPUTS": architecture.n_outputs,
        "KNOBS": len(KNOB_ORDER),
        "ITEM": item_shape(architecture, config)[0] * architecture.max_choices,
        "ELITE_WEIGHTS": int(config.elite_weights),
        "IN_TURN": int(config.update_order == "in_turn"),
        "BATCH_ROWS": config.batch_rows or 0,
    }
    real = {
        "ADAM_DECAY": config.adam_decay,
        "ADAM_SQUARE_DECAY": config.adam_square_decay,
        "ADAM_EPSILON": config.adam_epsilon,
        "PADDED": PADDED,
    }
    lines = [f"constexpr int {name} = {value};" for name, value in whole.items()]
    lines += [f"constexpr float {name} = {float(value)!r}f;" for name, value in real.items()]
    lines += [f"constexpr int {name.upper()} = {place};" for place, name in enumerate(KNOB_ORDER)]
    threads = f"#ifdef __CUDACC__\nconstexpr int THREADS = {THREADS};\n#else\nconstexpr int THREADS = 1;\n#endif\n"
    arrays = block_arrays(architecture, config).items()
    block = "struct Block {\n" + "\n".join(f"    {kind} {name}[{n}];" for name, (kind, n) in arrays) + "\n};\n"
    folder = files(__package__)
    head = ["\n".join(lines), threads, folder.joinpath("block.cuh").read_text("utf-8"), block]
    return "\n".join([*head, network_source(architecture), *(folder.joinpath(n).read_text("utf-8") for n in FILES)])
