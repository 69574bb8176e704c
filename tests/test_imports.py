"""Files import only downward, and `import gmeql` stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "gmeql"

PAGE = PACKAGE.parents[1] / "docs" / "architecture.md"


def layers(page: str) -> list[list[str]]:
    """The rows of the page's table of files, bottom to top; a name is a file or a folder of the package."""
    rows = re.findall(r"^\| ((?:`[\w]+(?:\.py|/)`(?:, )?)+) \|", page, flags=re.MULTILINE)
    return [re.findall(r"`(\w+)(?:\.py|/)`", row) for row in rows]


LAYERS = layers(PAGE.read_text(encoding="utf-8"))
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
ENTRY_POINTS = {"__init__", "__main__"}  # they stand outside the layers: lazy names, and `python -m gmeql`


def component(path: Path) -> str:
    """The file or folder directly under the package that holds `path`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_components(source: str, package: tuple[str, ...]) -> list[tuple[int, str]]:
    """Line and component of every import of gmeql's own in `source`, those inside functions included.

    `package` is the dotted package of the file, which relative imports start from.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            modules = [f"{stem}.{alias.name}" for alias in node.names] if stem == "gmeql" else [stem]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute | ast.Name)
            and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id)
            in {"import_module", "__import__"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            modules = [node.args[0].value]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "gmeql" and len(parts) > 1:
                found.append((node.lineno, parts[1]))
    return sorted(found)


FILES = sorted(path for path in PACKAGE.rglob("*.py") if component(path) not in ENTRY_POINTS)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES])
def test_imports_only_downward(path: Path) -> None:
    own = component(path)
    assert own in RANK, f"{own} has no row in docs/architecture.md, whose table is the order of the layers"
    package = ("gmeql", *path.relative_to(PACKAGE).parts[:-1])
    for line, other in imported_components(path.read_text(encoding="utf-8"), package):
        if other == own or other == "__version__":
            continue
        assert other in RANK, f"{path.name}:{line} imports gmeql.{other}, which is in no layer"
        assert RANK[other] <= RANK[own], f"{path.name}:{line} imports gmeql.{other}, which is not below gmeql.{own}"


def test_the_reader_of_imports_sees_every_form() -> None:
    source = (
        "import gmeql.cli\nfrom gmeql.search import Search\nfrom gmeql import estimator\nfrom . import front\n"
        "from .cpu import fit\nfrom ..network import f\ndef g():\n    import gmeql.web.app as app\n"
        "import importlib\nimportlib.import_module('gmeql.report')\nimport numpy\n"
    )
    assert imported_components(source, ("gmeql", "constants")) == [
        (1, "cli"),
        (2, "search"),
        (3, "estimator"),
        (4, "constants"),
        (5, "constants"),
        (6, "network"),
        (8, "web"),
        (10, "report"),
    ]


def test_import_gmeql_loads_nothing_heavy() -> None:
    heavy = "('jax', 'sympy', 'numba', 'scipy', 'sklearn', 'pandas', 'polars', 'plotly', 'typer', 'rich')"
    code = f"import sys, gmeql; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_table_of_layers_is_read_whole() -> None:
    page = "| file | what |\n| --- | --- |\n| `a.py` | x |\n| `b.py`, `c/` | y `d.py` |\n"
    assert layers(page) == [["a"], ["b", "c"]]
    assert RANK["operators"] < RANK["search"] < RANK["estimator"] < RANK["problems"] < RANK["bench"] < RANK["cli"]
    assert len(RANK) == sum(len(names) for names in LAYERS), "a file stands in two rows"


def test_unknown_public_name() -> None:
    import gmeql

    with pytest.raises(AttributeError, match="GMEQLRegressor"):
        gmeql.Regressor  # noqa: B018
    assert "GMEQLRegressor" in dir(gmeql)
