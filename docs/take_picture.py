"""Take the README's picture, docs/images/report.png: the upper part of the report of `make demo`'s second fit.

usage: python docs/take_picture.py    (needs the extra `dev` and a Chromium, as `make test` does)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
FIT = ["fit", "data/braking.csv", "--target", "distance", "--max-candidates", "30000"]
FIT_HEIGHT = 960  # down to the end of the front

sys.path.insert(0, str(ROOT / "tests"))
import prepare_browser  # noqa: E402


def main() -> None:
    browser = prepare_browser.find(os.environ)
    if browser is None:
        sys.exit("no Chromium found: install one, or name it in GMEQL_BROWSER")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        subprocess.run([sys.executable, "-m", "gmeql", *FIT, "--out", f"{folder}/run", "-q"], cwd=ROOT, check=True)
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page(viewport={"width": 1200, "height": FIT_HEIGHT})
        page.goto(f"file://{folder}/run/report.html")
        page.wait_for_selector("#front-plot svg")
        page.screenshot(path=PICTURE)
        chromium.close()
    print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()
