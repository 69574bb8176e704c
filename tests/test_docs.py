"""Code of the guide and of docstrings runs and prints what they say; links, names and the site's pages are whole."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str, int]]:
    """Language, text and first line of every python and text block."""
    content = page.read_text(encoding="utf-8")
    return [(m[1], m[2], content.count("\n", 0, m.start()) + 2) for m in BLOCK.finditer(content)]


def test_the_guide_is_there() -> None:
    assert len(PAGES) >= 8
    for page in PAGES:
        assert any(language == "python" for language, _, _ in blocks(page)), page.name


SLOW = {
    "classification",
    "cluster",
    "dynamics",
    "groups",
    "losses",
    "noise",
    "paper-method",
    "reading-the-front",
    "saving-and-resuming",
    "solve",
    "templates",
    "units",
}  # two seconds or more each
RUNS = [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.stem in SLOW else []) for p in PAGES]


@pytest.mark.parametrize("page", RUNS)
def test_code_blocks_run_and_print_what_is_shown(page: Path, tmp_path: Path, monkeypatch) -> None:
    from gmeql.formula.operators import OPERATORS
    from gmeql.formula.registration import unregister_operator

    monkeypatch.chdir(tmp_path)
    known = set(OPERATORS)
    namespace: dict[str, object] = {"__name__": page.stem}
    printed = ""
    try:
        for language, text, line in blocks(page):
            if language == "text":
                assert text.strip() == printed.strip(), f"{page.name}:{line} shows another output"
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * (line - 1) + text, str(page), "exec"), namespace)  # noqa: S102 - our own pages
            printed = out.getvalue()
    finally:
        for name in set(OPERATORS) - known:
            unregister_operator(name)


PACKAGE = ROOT / "src" / "gmeql"
SHOWN = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", SHOWN, ids=[str(path.relative_to(PACKAGE)) for path in SHOWN])
def test_examples_of_docstrings_print_what_is_shown(path: Path) -> None:
    """Not by `--doctest-modules`: it imports every file of the package and of the tests once more to look for examples."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    assert doctest.testmod(module).failed == 0


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=[example.stem for example in EXAMPLES])
def test_examples_run(example: Path, tmp_path: Path) -> None:
    answer = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout


PAGES_OF_ALL = [path for name in ("*.md", "docs/**/*.md", "data/*.md") for path in sorted(ROOT.glob(name))]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES_OF_ALL]


def prose(page: Path) -> str:
    """A page without its code, where brackets are no links."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", "", text)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as forges and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = [
        re.sub(r"[^\w\s-]", "", title).strip().lower() for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    return {re.sub(r"[\s-]+", "-", heading) for heading in headings}


@pytest.mark.parametrize("page", PAGES_OF_ALL, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: no file {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: no heading {link}"


@pytest.mark.parametrize("page", PAGES_OF_ALL, ids=NAMES)
def test_files_that_are_named_are_there(page: Path) -> None:
    """Paths from the root, or from the package, in prose and in commands."""
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"(?<![\w/.(-])((?:tests|benchmarks|docs|examples|experiments|src|gmeql)/[\w./-]*\w)", text):
        assert (ROOT / path).exists() or (ROOT / "src" / path).exists(), f"{page.name} names {path}"


def navigation() -> list[str]:
    """The pages that the site shows."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return re.findall(r"[\w/-]+\.md", settings[settings.index("\nnav:") :])


def test_every_page_is_shown_once() -> None:
    pages = sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))
    assert sorted(navigation()) == pages


def test_the_readme_is_short_and_plain() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 80 and max(map(len, lines)) <= 120
    assert not any(re.search(r"\b(?=\w*\d)[0-9a-f]{7,40}\b|\(\*\)", line) for line in lines)  # hashes, footnotes


def test_the_reference_has_every_public_name() -> None:
    import gmeql

    listed = re.findall(r"^::: gmeql\.(\w+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(name for name in gmeql.__all__ if not name.startswith("_"))


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed: make docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    reference = (tmp_path / "api.html").read_text(encoding="utf-8")
    assert 'id="gmeql.GMEQLRegressor.fit"' in reference
    assert "<math" in (tmp_path / "search.html").read_text(encoding="utf-8")
    for page in tmp_path.rglob("*.html"):  # the reader needs no network
        assert not re.search(r'(?:src|<link[^>]*href)="https?://', page.read_text(encoding="utf-8")), page.name
