"""`gmeql solve`: closed forms of differential equations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmeql.cli.exits import INTERRUPTED, NO_MODEL, USAGE, Exit, say
from gmeql.cli.options import (
    CandidatesOption,
    JobsOption,
    JsonOption,
    QuietOption,
    SeedOption,
    named_functions,
    seconds_option,
    typed_command,
)

if TYPE_CHECKING:
    from gmeql.differential.solving.solutions import Solutions


FORMATS = ("text", "sympy", "latex")
"""Forms in which a solution is printed."""


def solve(
    equation: Annotated[
        str,
        typer.Argument(
            help='As in "y\'\' = -y"; "y\' = z; z\' = -y" is a system, "u_t = u_xx" a function of several variables.',
            metavar="EQUATION",
        ),
    ],
    ics: Annotated[str, typer.Option(help='Initial or boundary values, as in "y(0)=0, y\'(0)=1".')] = "",
    domain: Annotated[str, typer.Option(help='Where it is wanted, as in 0..1, or "x=0..1, t=0..2".')] = "",
    variables: Annotated[str, typer.Option(help="Names of the variables, if they are not clear, as in x,t.")] = "",
    parameters: Annotated[str, typer.Option(help="Names that stay in the solution, as in k,m.")] = "",
    functions: Annotated[str | None, typer.Option(help="What a solution may use, as in +,-,*,/,sin,exp.")] = None,
    max_time: Annotated[float, seconds_option("Seconds to search at most.")] = 60.0,
    max_candidates: CandidatesOption = None,
    seed: SeedOption = 0,
    format: Annotated[str | None, typer.Option("--format", "-f", help="text, sympy or latex. (default: text)")] = None,
    jobs: JobsOption = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Write a report into this folder.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Solve a differential equation in closed form, with a proof.

    The solution goes to stdout, how sure it is to stderr. Where none is found, that is said, with the best approximation
    and its residual, and the exit code is 3. Ctrl-C ends it with what was found.
    """
    import gmeql
    from gmeql.cli.present import print_json
    from gmeql.differential.solving.text import read_text
    from gmeql.runs.settings import split_names

    if as_json and format is not None:
        raise Exit(USAGE, "gmeql: --json has forms of its own; leave --format out")
    format = format or FORMATS[0]
    if format not in FORMATS:
        raise Exit(USAGE, f"gmeql: --format {format!r}: unknown; one of {', '.join(FORMATS)}")
    try:
        problem = read_text(
            equation, ics=ics, domain=domain, variables=split_names(variables), parameters=split_names(parameters)
        )
        found = gmeql.solve(
            problem.equations,
            problem.functions,
            ics=problem.ics,
            domain=problem.domain,
            parameters=problem.parameters,
            functions=named_functions(functions),
            max_time=max_time,
            max_candidates=max_candidates,
            n_jobs=jobs,
            random_state=seed,
            verbose=0 if quiet else 1,
        )
    except ValueError as error:
        raise Exit(USAGE, f"gmeql: {' '.join(str(error).split())}") from None
    except ArithmeticError as error:
        raise Exit(NO_MODEL, f"gmeql: {error}") from None
    if out is not None:
        from gmeql.report.solution import build
        from gmeql.runs.equations import write_report

        given = {"equation": equation, "conditions": ics, "command": typed_command()}
        write_report(found, Path(out), build, **given)
    if as_json:
        print_json(_record(found))
    _tell(found, format, quiet=quiet, on_stdout=not as_json)
    if out is not None and not quiet:
        say(f"report: {Path(out) / 'report.html'}")
    if found.reason == "interrupted":
        raise Exit(INTERRUPTED, "interrupted")
    if not found.is_closed_form:
        raise Exit(NO_MODEL)


def _tell(found: Solutions, format: str, *, quiet: bool, on_stdout: bool) -> None:
    """The solution on stdout, what is known about it on stderr."""
    lines = str(found).splitlines()
    if found.is_closed_form:
        if on_stdout:
            forms = {"text": lines[0], "sympy": repr(found.sympy()), "latex": found.latex()}
            print(forms[format])
        lines = lines[1:]
    if not quiet or not found.is_closed_form:
        for line in lines:
            say(line.strip())


def _record(found: Solutions) -> dict[str, Any]:
    best = found.best
    return {
        "closed_form": found.is_closed_form,
        "proven": found.proven,
        "verdict": best.verdict,
        "solution": {name: str(form) for name, form in zip(best.names, best.forms, strict=True)},
        "latex": best.latex(),
        "residual": best.residual,
        "misfit": best.misfit,
        "domain": found.domain,
        "notes": list(found.notes),
        "reason": found.reason,
        "candidates": found.candidates,
        "seconds": round(found.seconds, 3),
        "front": found.records(),
    }
