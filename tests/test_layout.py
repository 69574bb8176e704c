"""tests/ mirrors src/gmeql, every module with logic has a test file of its own name; files and functions are short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

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
    return re.search(r"^\s*(async )?def ", module.read_text(encoding="utf-8"), re.MULTILINE) is not None


def home_of_tests(module: Path) -> Path:
    """Where the tests of a module stand; those of a folder's own functions have the name of the folder."""
    relative = module.relative_to(PACKAGE)
    if str(relative) in ELSEWHERE:
        return TESTS / ELSEWHERE[str(relative)]
    stem = relative.parent.name if relative.name == "__init__.py" else relative.stem
    return TESTS / relative.parent / f"test_{stem}.py"


def test_every_module_with_logic_has_tests_of_its_name() -> None:
    homes = {home_of_tests(module) for module in PACKAGE.rglob("*.py") if has_logic(module)}
    lacking = [
        home for home in sorted(homes) if not home.is_file() or "def test_" not in home.read_text(encoding="utf-8")
    ]
    assert [str(home.relative_to(ROOT)) for home in lacking] == []


def test_every_folder_of_tests_is_one_of_the_package() -> None:
    others = {"benchmarks", "data"}  # the benchmark programs, and files to read
    for folder in TESTS.rglob("*"):
        relative = folder.relative_to(TESTS)
        if folder.is_dir() and folder.name != "__pycache__" and relative.parts[0] not in others:
            assert (PACKAGE / relative).is_dir(), f"{relative} is no folder of the package"


MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 100
FOLDERS = ("src", "tests", "benchmarks", "examples")
SOURCES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.*"))
    if path.suffix in {".py", ".cu", ".cuh", ".js", ".css", ".html"}
}


def test_files_are_short() -> None:
    lines = {name: text.count("\n") for name, text in SOURCES.items()}
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}, "one subject a file"


parsed = cache(ast.parse)


def definitions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Every function and class in a piece of code; expressions, which hold none, are not walked through."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
        if not isinstance(child, ast.expr):
            yield from definitions(child)


def longest_possible(text: str) -> int:
    """Most lines that any function can have: to the next definition that is not indented more. Parsing takes longer."""
    lines = text.split("\n")
    starts = [(k, len(m[1])) for k, line in enumerate(lines) if (m := DEFINITION.match(line))]
    ends = [next((n for n, other in starts[i + 1 :] if other <= own), len(lines)) for i, (_, own) in enumerate(starts)]
    return max((end - start for end, (start, _) in zip(ends, starts, strict=True)), default=0)


DEFINITION = re.compile(r"( *)(?:async def|def|class) ")


def long_functions(text: str) -> list[str]:
    """Functions and methods past `MOST_LINES_OF_A_FUNCTION` whose docstring does not say why they are long."""
    if longest_possible(text) < MOST_LINES_OF_A_FUNCTION:
        return []
    functions = [node for node in definitions(parsed(text)) if not isinstance(node, ast.ClassDef)]
    long = [node for node in functions if (node.end_lineno or 0) - node.lineno >= MOST_LINES_OF_A_FUNCTION]
    return [node.name for node in long if not re.search(r"\blong\b", ast.get_docstring(node) or "", re.IGNORECASE)]


def test_functions_are_short() -> None:
    found = {name: long_functions(text) for name, text in SOURCES.items() if name.endswith(".py")}
    assert {name: functions for name, functions in found.items() if functions} == {}
    body = "    x = 1\n" * MOST_LINES_OF_A_FUNCTION
    assert long_functions(f"def short():\n{body[:-10]}\ndef f():\n{body}") == ["f"]
    assert long_functions(f"def f():\n    'Long: one branch per opcode.'\n{body}") == []


def test_every_file_of_the_package_says_what_it_is() -> None:
    """It opens with a sentence; names of code stand in single backticks, in all docstrings."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = SOURCES[str(path.relative_to(ROOT))]
        opening = re.match(r'(?:#.*\n)*r?"""(.*?)"""', text, re.DOTALL)
        first = opening[1].strip().split("\n\n")[0] if opening else ""
        assert first.endswith((".", ":")) or not text.strip(), f"{path.relative_to(ROOT)} does not say what it is"
        tree = parsed(text) if "``" in text else ast.Module([], [])  # parsing takes long
        texts = [ast.get_docstring(node) or "" for node in (tree, *definitions(tree))]
        assert not any("``" in text for text in texts), f"{path.relative_to(ROOT)}: double backticks"
