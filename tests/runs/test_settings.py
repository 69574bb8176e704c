"""Settings from flags, the environment and files; every wrong one is named with what is allowed."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from gmeql import GMEQLRegressor
from gmeql.model.fit.parameters import check_parameters
from gmeql.runs.settings import CHOICES, ConfigError, FitSettings, reproduce_command, resolve, split_names


def test_flags_beat_the_environment_beats_the_file(tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text('[fit]\nmax-time = 1\nseed = 1\nfunctions = ["sin", "add"]\ntarget = "y"\n')
    environment = {"GMEQL_SEED": "2", "GMEQL_MAX_TIME": "2", "GMEQL_CONFIG": str(path)}
    settings = resolve({"max_time": 3.0, "drop": None}, environment=environment)
    assert (settings.max_time, settings.seed, settings.functions, settings.target) == (3.0, 2, ("sin", "add"), "y")
    assert resolve({}, file=path, environment={}).max_time == 1.0
    assert resolve({"max_candidates": 10}, environment={}).max_time is None
    assert resolve({"max_candidates": 10, "max_time": 5}, environment={}).max_time == 5.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("max_tine = 3", "did you mean max_time"),
        ("seed = 'x'", "not a whole number"),
        ("seed = 1.5", "not a whole number"),
        ("seed = true", "not a whole number"),
        ("max_time = nan", "not a number"),
        ("max_time = inf", "too large"),
        ("header = 'perhaps'", "neither true nor false"),
        ("functions = [1]", "not a list of names"),
        ("method = 'other'", "one of fitted"),
        ("target = 3", "not text"),
        ("= 3", "not TOML"),
    ],
)
def test_a_wrong_file_names_the_setting(content, words, tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=words) as caught:
        resolve({}, file=path, environment={})
    assert str(path) in str(caught.value)


def test_settings_survive_the_run_folder():
    settings = FitSettings(target="y", columns=("a,b", "c"), pin=("sin(c)",), functions=("add", "sin"), seed=7)
    assert FitSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_the_command_to_repeat_a_run_reads_back():
    settings = FitSettings(
        target="the y", columns=("a,b", "c"), forbid=("sin", "c*c"), max_time=None, max_candidates=5, header=False
    )
    description = {"settings": settings.to_dict(), "data": {"source": "my data.csv", "target": "the y"}}
    words = shlex.split(reproduce_command(description))
    assert words[:5] == ["gmeql", "fit", "my data.csv", "--target", "the y"]
    assert words[words.index("--columns") + 1] == '"a,b",c' and split_names('"a,b",c') == ("a,b", "c")
    assert words.count("--forbid") == 2 and "--no-header" in words and words[-2:] == ["--seed", "0"]


@pytest.mark.parametrize("name", CHOICES)
def test_every_word_of_a_choice_is_taken_from_flag_environment_file_and_folder(name, tmp_path):
    for word in CHOICES[name]:
        path = tmp_path / "fit.toml"
        path.write_text(f"{name} = {json.dumps(word)}\n")
        stored = FitSettings(**{name: word}).to_dict()
        for settings in (
            resolve({name: word}, environment={}),
            resolve({}, environment={f"GMEQL_{name.upper()}": word}),
            resolve({}, file=path, environment={}),
            FitSettings.from_dict(stored),
        ):
            assert getattr(settings, name) == word


@pytest.mark.parametrize("name", CHOICES)
def test_a_word_that_no_choice_has_is_refused_with_those_allowed(name):
    for given in (lambda: resolve({name: "other"}, environment={}), lambda: FitSettings.from_dict({name: "other"})):
        with pytest.raises(ConfigError, match=f"'other' is not one of {re.escape(', '.join(CHOICES[name]))}"):
            given()


def test_the_estimator_takes_every_word_of_every_choice():
    parameter = {"selection": "model_selection"}
    for name in ("method", "selection", "loss", "device"):
        for word in CHOICES[name]:
            check_parameters(GMEQLRegressor(**{parameter.get(name, name): word}).get_params(deep=False))
            settings = resolve({name: word}, environment={})
            check_parameters(GMEQLRegressor(**settings.estimator_options()).get_params(deep=False))
