"""The race of settings: what it draws is valid, what it keeps is the better part."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gmeql.evaluation.paper.train import trained_cell_of

FOLDER = Path(__file__).parents[2] / "benchmarks" / "paper_race"
PARTS = ("race_settings", "race_scoring", "race_training", "race")


@pytest.fixture(scope="module")
def race():
    """The names of all parts of the race."""
    sys.path.insert(0, str(FOLDER))
    names = {}
    for part in PARTS:
        names |= vars(importlib.import_module(part))
    yield SimpleNamespace(**names)
    sys.path.remove(str(FOLDER))
    for part in PARTS:
        del sys.modules[part]


def line(race, setting, problem, seed, *, fits=False, relative=1.0, **changes):
    network = race.groups_of([problem], "hand")[0].architecture
    return {
        "setting": setting, "changes": {}, "budget": "final", "problem": problem, "seed": seed, "noise": 0.0,
        "layers": [list(layer) for layer in network.layers], "steps": 100, "samples_per_step": 40, "seconds": 1.0,
        "batch": 1, "choices": [0] * network.n_connections, "weights": [1.0] * network.n_weights,
        "mode": [0] * network.n_connections, "mode_weights": [1.0] * network.n_weights, "curve_steps": [50, 100],
        "curve": [2.0, 1.0], "best_fits": fits, "mode_fits": False, "relative": relative, **changes,
    }  # fmt: skip


def test_drawn_settings_are_valid_and_travel_as_json(race):
    settings = race.drawn_settings(40, seed=3, base=list(race.ANCHORS.values()))
    assert len({json.dumps(race.plain(s.changes), sort_keys=True) for s in settings}) > 30
    for setting in settings:
        again = race.setting_of(json.loads(json.dumps({"name": setting.name, "changes": race.plain(setting.changes)})))
        assert again.config((3, 500, 1000), 500) == setting.config((3, 500, 1000), 500)


def test_schedules_are_whole_chunks_within_the_papers_budget(race):
    for share, *_ in race.ROUNDS:
        rounds, first, second = race.schedule_of(share, race.CHUNK)
        assert first % race.CHUNK == second % race.CHUNK == 0
        assert rounds * first + second <= 3 * 2000 + 48_000
    assert race.schedule_of(1.0, race.CHUNK) == race.FULL


def test_variants_around_a_setting_take_the_papers_budget_of_instances(race):
    for changes in race.AROUND.values():
        config = race.Setting("one", {**race.COLD, **changes}).config(race.FULL, race.CHUNK)
        assert config.total_steps * config.samples_per_step == 2_160_000


def test_a_structure_is_judged_by_whether_constants_exist_that_make_it_the_truth(race):
    truth = line(race, "a", "b8", 3, choices=[1, 0, 3, 0, 0], mode=[0, 1, 3, 0, 0])
    truth |= {"weights": [1.1] * len(truth["weights"]), "mode_weights": [1.1] * len(truth["weights"])}
    race.mark([truth])
    assert truth["best_fits"] and not truth["mode_fits"]
    before = dict(race.KNOWN)
    race.mark([truth])
    assert truth["best_fits"] and {key for key in race.KNOWN if race.KNOWN[key] == race.FITS} <= set(before)


def test_true_structures_come_before_small_errors(race):
    lines = [line(race, "found", p, 0, fits=True, relative=0.5) for p in ("b1", "b6")]
    lines += [line(race, "near", p, 0, relative=1e-5) for p in ("b1", "b6")]
    lines += [line(race, "far", p, 0, relative=2.0) for p in ("b1", "b6")]
    scores = race.score(lines)
    assert sorted(scores, key=scores.get, reverse=True) == ["found", "near", "far"]
    assert scores["found"][0] == 0.5  # every structure, none of them near the data as it was trained
    assert race.score([line(race, "strict", "b1", 0, fits=True, relative=0.01)])["strict"][0] == 1.0
    assert "b1 1(1)/1" in race.shown([line(race, "strict", "b1", 0, fits=True, relative=0.01)], "strict")


def test_lines_that_are_there_are_not_trained_again(race, tmp_path):
    records = race.Records(tmp_path)
    records.add([line(race, "a", "b1", 5)])
    again = race.Records(tmp_path)
    runs = [(race.Setting("a", {}), "b1", seed) for seed in (5, 6)]
    assert [seed for *_, seed in again.missing(runs, "final")] == [6]
    assert len(again.missing(runs, "race0")) == 2


def test_a_line_of_a_known_setting_is_a_cell_of_the_evaluation(race):
    trained = trained_cell_of(line(race, "raced", "b6", 4))
    assert trained.cell.key == "full/b6/gmeql/raced/noise0/seed4"
    assert trained.candidates == (2000, 4000) and trained.total == 4000 and trained.mode is not None
    assert trained_cell_of(line(race, "s1-3", "b6", 4)) is None
