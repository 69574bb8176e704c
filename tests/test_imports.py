"""Rooms and files import only downward, no two know each other, and `import gmeql` stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "gmeql"
PAGE = PACKAGE.parents[1] / "docs" / "architecture.md"
ENTRY_POINTS = {"gmeql", "gmeql.__main__"}  # they stand outside the rooms: lazy names, and `python -m gmeql`


def floors(page: str) -> dict[str, list[str]]:
    """The rooms of the page, bottom to top, each with its rows of files, bottom to top."""
    found: dict[str, list[str]] = {}
    for heading, body in re.findall(
        r"^### `([\w/]+?)(?:\.py|/)`\n(.*?)(?=^##|\Z)", page, flags=re.MULTILINE | re.DOTALL
    ):
        rows = re.findall(r"^\| `(\w+)(?:\.py|/)` \|", body, flags=re.MULTILINE)
        found[heading] = rows
    return found


ROOMS = floors(PAGE.read_text(encoding="utf-8"))
ROOM_RANK = {room: rank for rank, room in enumerate(ROOMS)}


def module_of(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = ["gmeql", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Every statement in a piece of code, those inside others included; expressions are not walked through."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.expr):
            yield from statements(child)


def imported_modules(source: str, package: tuple[str, ...], modules: set[str]) -> list[tuple[int, str]]:
    """Line and module of every import of gmeql's own in `source`, those inside functions included.

    `package` is the dotted package of the file, which relative imports start from. `from a import b` is the module
    `a.b` where there is one, else `a`.
    """
    found = []
    tree = ast.parse(source)
    for node in ast.walk(tree) if re.search(r"import_module|__import__", source) else statements(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            inner = [f"{stem}.{alias.name}" for alias in node.names]
            names = [name if name in modules else stem for name in inner]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute | ast.Name)
            and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id)
            in {"import_module", "__import__"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            names = [node.args[0].value]
        found += [(node.lineno, name) for name in names if name.split(".")[0] == "gmeql"]
    return sorted(set(found))


@cache
def imports_of(module: str) -> list[tuple[int, str]]:
    """Line and module of everything of gmeql's own that a module imports."""
    path = FILES[module]
    package = tuple(module.split(".")) if path.name == "__init__.py" else tuple(module.split(".")[:-1])
    return [
        (line, other)
        for line, other in imported_modules(path.read_text(encoding="utf-8"), package, set(FILES))
        if other not in (module, "gmeql")
    ]


def places(module: str) -> dict[str, str]:
    """The rooms a module stands in, outermost first, and its row in each; folders with a heading of their own are rooms too."""
    parts = module.split(".")[1:]
    if len(parts) == 1:
        return {parts[0]: "__init__" if FILES[module].name == "__init__.py" else parts[0]}
    depths = (depth for depth in range(1, len(parts) + 1) if depth == 1 or "/".join(parts[:depth]) in ROOMS)
    return {"/".join(parts[:depth]): parts[depth] if depth < len(parts) else "__init__" for depth in depths}


CHECKED = [module for module in FILES if module not in ENTRY_POINTS]


def faults(module: str) -> list[str]:
    """What of a module's imports goes upward, and where it has no place of its own."""
    here = places(module)
    outermost = next(iter(here))
    if outermost not in ROOMS:
        return [f"{outermost} has no heading in docs/architecture.md, whose order is that of the rooms"]
    # a face that hands names on may know every file of its room
    rows = {room: row for room, row in here.items() if row != "__init__" or row in ROOMS[room]}
    lacking = [room for room, row in rows.items() if row not in ROOMS[room]]
    if lacking:
        return [f"{module} has no row under {lacking[0]} in docs/architecture.md"]
    found = []
    for line, other in imports_of(module):
        there = places(other)
        other_outermost = next(iter(there))
        if other_outermost not in ROOMS:
            found.append(f"{module}:{line} imports {other}, which is in no room")
        elif other_outermost != outermost:
            if ROOM_RANK[other_outermost] > ROOM_RANK[outermost]:
                found.append(f"{module}:{line} imports {other}, which is not below {outermost}")
        elif any(
            there.get(room) in ROOMS[room] and ROOMS[room].index(there[room]) > ROOMS[room].index(row)
            for room, row in rows.items()
        ):
            found.append(f"{module}:{line} imports {other}, which is not below it")
    return found


def test_imports_only_downward() -> None:
    assert [fault for module in CHECKED for fault in faults(module)] == []


def test_faults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    upward = {
        "gmeql.formula.nodes": [(3, "gmeql.search.search"), (4, "gmeql.formula.simplify"), (5, "gmeql.tables.read")]
    }
    upward["gmeql.search.direct.terms.library"] = [(5, "gmeql.search.direct.sums.held")]
    monkeypatch.setitem(globals(), "imports_of", upward.get)
    assert faults("gmeql.formula.nodes") == [
        "gmeql.formula.nodes:3 imports gmeql.search.search, which is not below formula",
        "gmeql.formula.nodes:4 imports gmeql.formula.simplify, which is not below it",
    ]
    assert faults("gmeql.search.direct.terms.library") == [
        "gmeql.search.direct.terms.library:5 imports gmeql.search.direct.sums.held, which is not below it"
    ]
    monkeypatch.setitem(FILES, "gmeql.formula.unknown", PACKAGE / "formula" / "unknown.py")
    monkeypatch.setitem(FILES, "gmeql.attic.box", PACKAGE / "attic" / "box.py")
    assert faults("gmeql.formula.unknown") == ["gmeql.formula.unknown has no row under formula in docs/architecture.md"]
    assert faults("gmeql.attic.box")[0].startswith("attic has no heading")


def test_no_two_files_know_each_other() -> None:
    graph = {module: {other for _, other in imports_of(module)} for module in CHECKED}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_every_row_of_the_page_is_a_file() -> None:
    for room, rows in ROOMS.items():
        for row in rows:
            where = PACKAGE if row == room else PACKAGE / room
            assert (where / f"{row}.py").exists() or (where / row).is_dir(), f"{room}: {row} is no file"
        assert len(rows) == len(set(rows)), f"a file stands in two rows of {room}"


def test_the_row_of_a_folder_names_what_is_in_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for room, rows in ROOMS.items():
        for folder in (PACKAGE / room / row for row in rows if (PACKAGE / room / row).is_dir()):
            texts = re.findall(rf"^\| `{folder.name}/` \| (.*)$", page, re.MULTILINE)
            named = {name.rstrip("/") for text in texts for name in re.findall(r"`([\w/.]+)`", text)}
            inside = {path.name for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
            assert inside - named <= {"__init__.py"}, f"{room}: the row of {folder.name} lacks {inside - named}"


def test_the_reader_of_imports_sees_every_form() -> None:
    source = (
        "import gmeql.cli\nfrom gmeql.search import search\nfrom gmeql import estimator\nfrom . import cpu\n"
        "from .cpu import fit\nfrom ..network import f\ndef g():\n    import gmeql.web.app as app\n"
        "import importlib\nimportlib.import_module('gmeql.report')\nimport numpy\n"
    )
    modules = {"gmeql.search.search", "gmeql.estimator", "gmeql.fitters.cpu"}
    assert imported_modules(source, ("gmeql", "fitters"), modules) == [
        (1, "gmeql.cli"),
        (2, "gmeql.search.search"),
        (3, "gmeql.estimator"),
        (4, "gmeql.fitters.cpu"),
        (5, "gmeql.fitters.cpu"),
        (6, "gmeql.network"),
        (8, "gmeql.web.app"),
        (10, "gmeql.report"),
    ]


def test_imports_are_seen_wherever_they_stand() -> None:
    inner = "        import gmeql.cli\n"
    for head in ("if x:\n    with y:\n", "try:\n    pass\nexcept E:\n    for x in y:\n", "match x:\n    case 1:\n",
                 "class A:\n    async def f():\n", "while x:\n    pass\nelse:\n    if y:\n"):  # fmt: skip
        assert imported_modules(head + inner, ("gmeql",), set()) == [(head.count("\n") + 1, "gmeql.cli")]


def test_import_gmeql_loads_nothing_heavy() -> None:
    heavy = "('jax', 'sympy', 'numba', 'scipy', 'sklearn', 'pandas', 'polars', 'plotly', 'typer', 'rich')"
    code = f"import sys, gmeql; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_page_is_read_whole() -> None:
    page = "### `a/`\n\n| file | what |\n| --- | --- |\n| `x.py` | x |\n| `y/` | y `d.py` |\n\n### `b.py`\n\n| `b.py` | z |\n"
    assert floors(page) == {"a": ["x", "y"], "b": ["b"]}
    inner = {"search": "direct", "search/direct": "waves", "search/direct/waves": "angles"}
    assert places("gmeql.search.direct.waves.angles") == inner
    order = ["tables", "formula", "network", "fitters", "search", "paper", "model", "estimator", "runs", "cli"]
    assert sorted(order, key=ROOM_RANK.__getitem__) == order


def test_unknown_public_name() -> None:
    import gmeql

    with pytest.raises(AttributeError, match="GMEQLRegressor"):
        gmeql.Regressor  # noqa: B018
    assert "GMEQLRegressor" in dir(gmeql)
