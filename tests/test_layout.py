"""tests/ mirrors src/gmeql: every module with logic has a test file of its own name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "gmeql"
TESTS = ROOT / "tests"

ELSEWHERE = {
    "__init__.py": "test_imports.py",  # names that are loaded on first use
    "_version.py": "test_version.py",
    "_deferred.py": "test_deferred.py",
}


def has_logic(module: Path) -> bool:
    """Whether there is a function or a method in it; constants and classes of fields alone are data."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree))


def home_of_tests(module: Path) -> Path:
    """Where the tests of a module stand; those of a folder's own functions have the name of the folder."""
    relative = module.relative_to(PACKAGE)
    if str(relative) in ELSEWHERE:
        return TESTS / ELSEWHERE[str(relative)]
    stem = relative.parent.name if relative.name == "__init__.py" else relative.stem
    return TESTS / relative.parent / f"test_{stem}.py"


MODULES = [module for module in sorted(PACKAGE.rglob("*.py")) if has_logic(module)]


@pytest.mark.parametrize("module", MODULES, ids=[str(module.relative_to(PACKAGE)) for module in MODULES])
def test_every_module_with_logic_has_tests_of_its_name(module: Path) -> None:
    tests = home_of_tests(module)
    assert tests.is_file(), f"no {tests.relative_to(ROOT)}"
    assert "def test_" in tests.read_text(encoding="utf-8")


def test_every_folder_of_tests_is_one_of_the_package() -> None:
    others = {"benchmarks", "data"}  # the benchmark programs, and files to read
    for folder in TESTS.rglob("*"):
        relative = folder.relative_to(TESTS)
        if folder.is_dir() and folder.name != "__pycache__" and relative.parts[0] not in others:
            assert (PACKAGE / relative).is_dir(), f"{relative} is no folder of the package"
