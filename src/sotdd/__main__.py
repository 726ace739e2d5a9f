"""Run the command line as ``python -m sotdd``."""

from sotdd.commands import main

main()
