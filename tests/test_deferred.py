"""Stand-ins for modules: free to import, the module itself at first use, gone afterwards."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gmeql._deferred import HARDLY_USED_BY_SKLEARN, deferred


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with a submodule, not loaded, whose loading can be seen."""
    name = "gmeql_test_of_deferred"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("answer = 42\n")
    (tmp_path / name / "inner.py").write_text("answer = 43\n")
    (tmp_path / f"{name}_user.py").write_text(f"import {name}.inner as inner\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield name
    for loaded in [module for module in sys.modules if module.split(".")[0].startswith(name)]:
        del sys.modules[loaded]


def test_a_module_is_loaded_at_its_first_use(package: str) -> None:
    with deferred(package):
        stand_in = importlib.import_module(package)
    assert package not in sys.modules
    assert stand_in.answer == 42
    assert sys.modules[package] is not stand_in
    assert importlib.import_module(package).answer == 42


def test_what_is_inside_a_package_can_be_imported_through_its_stand_in(package: str) -> None:
    with deferred(package):
        assert importlib.import_module(f"{package}.inner").answer == 43
        assert sys.modules[package].answer == 42


def test_a_module_inside_a_package_is_an_attribute_of_it_as_after_any_import(package: str) -> None:
    whole = importlib.import_module(package)
    with deferred(f"{package}.inner"):
        user = importlib.import_module(f"{package}_user")
        assert whole.inner is user.inner
    assert not hasattr(whole, "inner")
    assert user.inner.answer == 43 and whole.inner is sys.modules[f"{package}.inner"]


def test_a_package_and_what_is_inside_it_wait_together(package: str) -> None:
    with deferred(package, f"{package}.inner"):
        user = importlib.import_module(f"{package}_user")
    assert not [module for module in sys.modules if module.split(".")[0] == package]
    assert user.inner.answer == 43 and sys.modules[package].inner.answer == 43


def test_what_is_inside_a_missing_package_is_left_alone() -> None:
    with deferred("no_such_module_anywhere.inner"), pytest.raises(ImportError):
        importlib.import_module("no_such_module_anywhere.inner")


def test_a_name_that_a_module_lacks_is_missed_as_ever(package: str) -> None:
    with deferred(package):
        stand_in = importlib.import_module(package)
    with pytest.raises(AttributeError, match="question"):
        stand_in.question  # noqa: B018


def test_loaded_and_missing_modules_are_left_alone() -> None:
    with deferred("sys", "no_such_module_anywhere"):
        assert importlib.import_module("sys") is sys
        with pytest.raises(ImportError):
            importlib.import_module("no_such_module_anywhere")


def test_an_error_inside_leaves_no_stand_in(package: str) -> None:
    with pytest.raises(KeyError), deferred(package):
        raise KeyError
    assert package not in sys.modules


def test_what_others_hardly_use_is_not_imported_before_it_is_used() -> None:
    """Most of what importing the regressor took, and differential equations, which every command about them waits for. pandas
    works as ever afterwards, scikit-learn's own use of it too."""
    unused = (*HARDLY_USED_BY_SKLEARN, "numba", "sympy", "jax", "polars", "importlib.metadata")
    later = ("pandas", "scipy.stats", "narwhals", "numpy.f2py")
    code = (
        "import sys\n"
        f"for name, unused in dict(GMEQLRegressor={unused}, solve={later}, GMEQLDynamics={later}).items():\n"
        "    exec(f'from gmeql import {name}')\n"
        "    print(name, [one for one in unused if one in sys.modules])\n"
        "import pandas, scipy.stats\n"
        "from sklearn.utils.fixes import pd\n"
        "print(pd.DataFrame is pandas.DataFrame, scipy.stats.norm.ppf(0.5))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["GMEQLRegressor []", "solve []", "GMEQLDynamics []", "True 0.0"]
