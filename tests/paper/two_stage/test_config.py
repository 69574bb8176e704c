"""The numbers of Algorithm 1: presets, schedule, refusals by name."""

import pytest

from gmeql.paper.two_stage.config import SCHEDULE, SHAPING, Chunk, TwoStageConfig


def test_presets_hold_the_numbers_of_text_and_code():
    paper, released = TwoStageConfig.paper(), TwoStageConfig.released()
    assert (paper.stage1_rounds, paper.stage1_steps, paper.stage2_steps) == (3, 2000, 48_000)
    assert (paper.samples_per_step, paper.offline_batch, paper.capacity) == (40, 40, 400)
    assert (paper.resample_fraction, paper.temperature, paper.logits_rate) == (0.2, 2 / 3, 1e-3)
    assert released.total_steps == 6 * 8000 + 50_000
    assert (released.resample_fraction, released.gradient_clip, released.offline_rate) == (1.0, 1.0, 3e-4)
    assert TwoStageConfig(use_stage1=False).segments == (48_000,)
    assert (paper.draw_law, paper.resample_law, paper.update_order) == ("rank", "count", "together")
    assert (released.draw_law, released.resample_law, released.update_order) == ("released", "bernoulli", "in_turn")
    assert released.average_choices and released.merge_rounds and released.epsilon_hat and released.fill_first


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", 0.0), ("resample_fraction", 1.5), ("capacity", 0), ("offline_rule", "other"), ("stage1_rounds", -1),
     ("draw_law", "best"), ("update_order", "last"), ("final_temperature", 0.0), ("nan_rule", ""),
     ("final_weights_rate", 0.0), ("best_form", "best"),
     ("logits_rate", -1e-3), ("batch_rows", 0), ("gradient_clip", 0.0), ("adam_decay", 1.0), ("samples_per_step", 2.5)],
)  # fmt: skip
def test_bad_numbers_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        TwoStageConfig(**{name: value})


def test_weights_of_elites_go_with_the_order_of_the_text():
    for changes in ({"update_order": "in_turn"}, {"refresh_elites": True}):
        with pytest.raises(ValueError, match="elite_weights must be False where"):
            TwoStageConfig(elite_weights=True, **changes)


def test_the_schedule_cuts_every_stretch_into_chunks_and_starts_each_afresh():
    config = TwoStageConfig(stage1_rounds=2, stage1_steps=5, stage2_steps=4, chunk_steps=3)
    assert config.segments == (5, 5, 4)
    assert list(config.chunks) == [
        Chunk(0, 3, True, 1), Chunk(3, 2, False, 1), Chunk(5, 3, True, 1), Chunk(8, 2, False, 1),
        Chunk(10, 3, True, 2), Chunk(13, 1, False, 2),
    ]  # fmt: skip
    assert sum(chunk.steps for chunk in config.chunks) == config.total_steps


def test_only_what_shapes_the_program_is_kept_of_its_key():
    config = TwoStageConfig.released(capacity=7, chunk_steps=3)
    assert config.shape == TwoStageConfig(capacity=7, update_order="in_turn")
    assert not set(SCHEDULE) & set(SHAPING)
