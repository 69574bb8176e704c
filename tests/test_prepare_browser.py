"""`make test` brings its browser, on machines with one, with a way to get one, and with neither."""

from __future__ import annotations

import sys
from pathlib import Path

import prepare_browser
import pytest

ASK = "import os; print(os.environ.get('GMEQL_BROWSER'), os.environ.get('GMEQL_NO_BROWSER'))"


class Machine:
    """A path of fake programs; what they were asked stands in a log."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.log = folder / "log"
        self.log.touch()
        # Playwright looks for its browsers here and finds none; `/bin/sh` needs no path.
        self.environment = {"PATH": str(self.programs), "PLAYWRIGHT_BROWSERS_PATH": str(folder / "browsers")}

    def add(self, name: str, script: str) -> Path:
        program = self.programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.log}"\n{script}\n')
        program.chmod(0o755)
        return program

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines()

    def run(self, capfd: pytest.CaptureFixture[str], *, is_root: bool = False, code: str = ASK) -> tuple[int, str]:
        answer = prepare_browser.main([sys.executable, "-c", code], self.environment, is_root=is_root)
        return answer, capfd.readouterr().out


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine without a browser, where Playwright cannot download one."""
    found = Machine(tmp_path)
    monkeypatch.setattr(prepare_browser, "playwrights_own", lambda environment: None)
    real = prepare_browser.succeeds

    def succeeds(command: tuple[str, ...], environment: dict[str, str]) -> bool:
        if "playwright" in command:
            found.log.write_text(found.log.read_text() + "playwright install\n")
            return False
        return real(command, environment)

    monkeypatch.setattr(prepare_browser, "succeeds", succeeds)
    return found


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_a_browser_on_the_path_is_taken(machine: Machine, capfd, name: str) -> None:
    program = machine.add(name, "exit 0")
    assert machine.run(capfd) == (0, f"{program} None\n")


def test_a_browser_that_does_not_start_is_passed_over(machine: Machine, capfd) -> None:
    machine.add("chromium", "exit 1")
    program = machine.add("google-chrome", "exit 0")
    assert machine.run(capfd) == (0, f"{program} None\n")


def test_a_named_browser_is_not_searched_for(machine: Machine, capfd) -> None:
    machine.add("chromium", "exit 0")
    machine.environment["GMEQL_BROWSER"] = "/my/chrome"
    assert machine.run(capfd) == (0, "/my/chrome None\n")
    assert machine.asked() == []


def test_playwrights_own_browser_is_taken(machine: Machine, capfd, monkeypatch: pytest.MonkeyPatch) -> None:
    program = machine.add("playwrights-chrome", "exit 0")
    monkeypatch.setattr(prepare_browser, "playwrights_own", lambda environment: str(program))
    assert machine.run(capfd) == (0, f"{program} None\n")


def test_root_installs_one(machine: Machine, capfd) -> None:
    chromium = machine.programs / "chromium"
    machine.add(
        "apt-get", f'[ "$1" = install ] || exit 0; printf "#!/bin/sh\\n" > {chromium}; /bin/chmod 755 {chromium}'
    )
    code, printed = machine.run(capfd, is_root=True)
    assert code == 0 and printed.endswith(f"{chromium} None\n")
    assert [line.split()[1] for line in machine.asked()] == ["update", "install"]


def test_other_users_leave_the_system_alone(machine: Machine, capfd) -> None:
    machine.add("apt-get", "exit 0")
    code, printed = machine.run(capfd, is_root=False)
    assert code == 0 and printed.endswith(prepare_browser.MISSING)
    assert machine.asked() == ["playwright install"]


@pytest.mark.parametrize("script", ["exit 100", "exit 0"], ids=["refused", "empty stand-in"])
def test_where_none_can_be_had_the_last_lines_say_so(machine: Machine, capfd, script: str) -> None:
    machine.add("apt-get", script)
    code, printed = machine.run(capfd, is_root=True)
    assert code == 0
    assert printed.endswith("None 1\n" + prepare_browser.MISSING)
    assert machine.asked()[-1] == "playwright install"


def test_tests_that_fail_still_fail(machine: Machine, capfd) -> None:
    assert machine.run(capfd, code="raise SystemExit(3)")[0] == 3


def test_who_wants_none_gets_none_and_is_reminded(machine: Machine, capfd) -> None:
    machine.add("chromium", "exit 0")
    machine.environment["GMEQL_NO_BROWSER"] = "1"
    assert machine.run(capfd) == (0, "None 1\n" + prepare_browser.UNWANTED)


def test_playwright_is_asked_for_its_own(tmp_path: Path) -> None:
    own = prepare_browser.playwrights_own({"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)})
    assert own is not None and own.startswith(str(tmp_path))
