"""Float32 against float64 of Algorithm 1: rounding moves few numbers and late, a fault most of them and at once."""

import pytest
from programs import program
from host_cuda import HostDriver, needs_compiler
from two_stage_runs import TINY, data

paper_method = program("benchmarks/paper_method.py")

paper_method.WARM_STEPS = 20

pytestmark = pytest.mark.usefixtures("compiled_quickly")
FEW = dict(samples_per_step=4, offline_batch=3, capacity=6, logits_rate=0.02, weights_rate=0.02, offline_rate=0.02)


def compared(driver: HostDriver) -> dict[tuple[int, str], dict]:
    X, y = data(rows=40)
    found = paper_method.compare(TINY, X, y, 6, 20, driver, **FEW)
    return {(one["steps"], one["by"]): one for one in found}


@needs_compiler
@pytest.mark.slow  # the engine's own tests hold the kernel against JAX
def test_the_kernel_is_as_far_from_float64_as_jax_is():
    found = compared(HostDriver())
    for by in ("jax", "kernel"):
        assert found[1, by]["median"] < 1e-4 and found[1, by]["off_by_0.001"] < 0.01
    assert found[20, "kernel"]["off_by_0.01"] <= 3 * found[20, "jax"]["off_by_0.01"] + 0.01


@needs_compiler
@pytest.mark.slow  # as above
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("along += selected[l] * slope[l];", "along += selected[l] * slope[l] * 1.01f;"),
        pytest.param(
            "total += is_sound ? gradient : 0.0f;",
            "total += is_sound && p > 0 ? gradient : 0.0f;",
            id="a lost addend",
        ),
        pytest.param("gradient /= OFFLINE;", "gradient /= OFFLINE - 1;", id="another divisor"),
    ],
)
def test_a_fault_shows_at_the_first_step(right, wrong):
    class Faulty(HostDriver):
        def launch(self, text, name, **options):
            assert right in text
            super().launch(text.replace(right, wrong), name, **options)

    found = compared(Faulty())
    assert found[1, "kernel"]["off_by_0.001"] > 0.02 and found[1, "jax"]["off_by_0.001"] < 0.01
