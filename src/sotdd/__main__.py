"""Run the command line as ``python -m sotdd``."""

from sotdd.cli import main

main()
