"""Files of laws of fields."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gmeql import GMEQLField
from gmeql.model.files.storage import StorageError
from heat import T, U, X, heat_model


def test_what_is_saved_loads_and_applies_to_data(tmp_path: Path) -> None:
    model = heat_model()
    model.save(tmp_path / "law.json")
    loaded = GMEQLField.load(tmp_path / "law.json")
    assert str(loaded) == str(model) and loaded.get_params() == model.get_params()
    assert (loaded.noise_, loaded.periodic_, loaded.column_names_) == (
        model.noise_,
        model.periodic_,
        model.column_names_,
    )
    assert np.array_equal(loaded.predict(U, x=X, t=T), model.predict())
    assert loaded.score(U, x=X, t=T) == model.score()
    assert np.array_equal(loaded.simulate(data=(U, X, T)), model.simulate())
    for use in (loaded.predict, loaded.score, loaded.simulate, loaded.plot_fields):
        with pytest.raises(ValueError, match="holds no data; give u, x and t"):
            use()


def test_a_damaged_file_is_a_storage_error(tmp_path: Path) -> None:
    path = tmp_path / "law.json"
    heat_model().save(path)
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {"checksum": "sha256:0"}))
    with pytest.raises(StorageError, match="damaged"):
        GMEQLField.load(path)
    path.write_text(json.dumps(whole | {"format": "gmeql-dynamics"}))
    with pytest.raises(StorageError):
        GMEQLField.load(path)


@pytest.mark.parametrize(
    ("entry", "value", "sentence"),
    [
        ("selected", [99], "selected"),
        ("noise", [-1.0], "noise must be finite"),
        ("columns", ["a", "b"], "columns differ"),
        ("periodic", [1], "periodic must be a list"),
        ("order", 0, "order"),
    ],
)
def test_every_entry_is_checked(tmp_path: Path, entry: str, value: object, sentence: str) -> None:
    from gmeql.differential.fields.model_file import _from_payload

    path = tmp_path / "law.json"
    heat_model().save(path)
    payload = json.loads(path.read_text())["payload"]
    assert _from_payload(payload).fields == ("u",)
    with pytest.raises(ValueError, match=sentence):
        _from_payload(payload | {entry: value})
