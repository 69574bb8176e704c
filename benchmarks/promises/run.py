"""The promises that users can check from outside, each kept so often out of so many times.

usage: python benchmarks/promises/run.py same [--kills 30] [--candidates 3000] [--fresh]
       python benchmarks/promises/run.py forms [--formulas 300]
       python benchmarks/promises/run.py hardship [--fresh]
       python benchmarks/promises/run.py page [--runs 20] [--connections 50]

same      One seed and one `max_candidates` give one front, to the last digit: on one thread and two, on workers, after
          pickling and saving, after kills (SIGKILL at random times) and resumes of a run folder.
forms     Printed, SymPy, Python, C and JSON forms of random formulas compute what `predict` does, also outside the
          range of the data, at zeros, at negative and at huge values.
hardship  A full disk, a read-only folder, no HOME, few files, little memory: an exit code and a line, no traceback.
page      The page of `gmeql ui` under queued runs, idle connections, uploads past its limit and a killed server.

`--fresh` adds what needs kernels compiled anew, a minute or two each: the process that finds none on disk against the
next one, two processes at once, a full disk. Every check prints a line; the exit status is 0 only if all are good.
"""

from __future__ import annotations

import argparse
import sys

from common import Report
from forms import forms
from hardship import hardship
from page import page
from same import same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("same")
    one.add_argument("--kills", type=int, default=30)
    one.add_argument("--candidates", type=int, default=3000)
    one.add_argument("--fresh", action="store_true")
    two = commands.add_parser("forms")
    two.add_argument("--formulas", type=int, default=300)
    three = commands.add_parser("hardship")
    three.add_argument("--fresh", action="store_true")
    four = commands.add_parser("page")
    four.add_argument("--runs", type=int, default=20)
    four.add_argument("--connections", type=int, default=50)
    options = vars(parser.parse_args())
    report = Report()
    {"same": same, "forms": forms, "hardship": hardship, "page": page}[options.pop("command")](report, **options)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
