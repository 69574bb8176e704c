"""The command line: `gmeql`."""

from gmeql.cli.app import main

__all__ = ["main"]
