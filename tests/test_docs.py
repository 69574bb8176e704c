"""Every code block of the guide runs, and prints what the guide says it prints."""

from __future__ import annotations

import contextlib
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


SLOW = {"paper-method"}  # compiles the relaxed network
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


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=[example.stem for example in EXAMPLES])
def test_examples_run(example: Path, tmp_path: Path) -> None:
    answer = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout


def test_the_reference_has_every_public_name() -> None:
    import gmeql

    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    missing = [name for name in gmeql.__all__ if not name.startswith("_") and f"\n## {name}\n" not in reference]
    assert not missing, f"run docs/generate_api.py; missing: {missing}"
