"""`python -m gmeql`."""

from gmeql.cli import main

main()
