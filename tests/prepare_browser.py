"""Run a command with a browser at hand, or say at the very end that there was none: `prepare_browser.py COMMAND ...`.

The command gets `GMEQL_BROWSER`, the program to start, or `GMEQL_NO_BROWSER=1` where none was found and none could be
installed. Standard library only, since it may run before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
APT_GET = (
    ("apt-get", "update", "-qq"),
    ("apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"),
)
ASK_PLAYWRIGHT = (
    "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
)
ANSWER_SECONDS = 60
INSTALL_SECONDS = 900

MISSING = """
################################################################################
##  THE BROWSER TESTS WERE SKIPPED: no Chromium was found,                    ##
##  and none could be installed on this machine.                              ##
##  Install one (Debian: apt-get install chromium), or name one:              ##
##  GMEQL_BROWSER=/path/to/chrome make test                                   ##
################################################################################
"""
UNWANTED = """
################################################################################
##  THE BROWSER TESTS WERE SKIPPED, as GMEQL_NO_BROWSER=1 asks.               ##
################################################################################
"""


def starts(program: str, environment: Mapping[str, str]) -> bool:
    """Whether the program runs here: distributions ship empty stand-ins, downloads may lack system libraries."""
    try:
        answer = subprocess.run(
            [program, "--version"], env=dict(environment), capture_output=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def playwrights_own(environment: Mapping[str, str]) -> str | None:
    """The Chromium that Playwright would start, whether or not it is there."""
    try:
        answer = subprocess.run(
            [sys.executable, "-c", ASK_PLAYWRIGHT],
            env=dict(environment), capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None


def find(environment: Mapping[str, str]) -> str | None:
    """The first browser that starts: the one that is named, those on the path, Playwright's own."""
    named = environment.get("GMEQL_BROWSER")
    if named:
        return named
    for name in NAMES:
        program = shutil.which(name, path=environment.get("PATH", ""))
        if program and starts(program, environment):
            return program
    own = playwrights_own(environment)
    return own if own and starts(own, environment) else None


def succeeds(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Run one step of an installation; its own words stay on the terminal."""
    program = shutil.which(command[0], path=environment.get("PATH", ""))
    if program is None:
        return False
    print("+", *command, flush=True)
    quiet = dict(environment) | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run([program, *command[1:]], env=quiet, timeout=INSTALL_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def install(environment: Mapping[str, str], *, is_root: bool) -> str | None:
    """A browser from the distribution, where that is allowed, else from Playwright; `None` where neither works."""
    print("no Chromium found; installing one for the browser tests", flush=True)
    if is_root and all(succeeds(command, environment) for command in APT_GET) and (found := find(environment)):
        return found
    succeeds((sys.executable, "-m", "playwright", "install", "chromium"), environment)
    return find(environment)


def main(command: Sequence[str], environment: Mapping[str, str], *, is_root: bool) -> int:
    """Run the command with what was found; its exit code."""
    notice = UNWANTED if environment.get("GMEQL_NO_BROWSER") == "1" else ""
    browser = None
    if not notice:
        browser = find(environment) or install(environment, is_root=is_root)
        notice = "" if browser else MISSING
    found = {"GMEQL_BROWSER": browser} if browser else {"GMEQL_NO_BROWSER": "1"}
    code = subprocess.run(command, env=dict(environment) | found, check=False).returncode
    print(notice, end="", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ, is_root=os.geteuid() == 0))
