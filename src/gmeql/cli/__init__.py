"""The command line: `gmeql`."""

from gmeql.cli.commands import main

__all__ = ["main"]
