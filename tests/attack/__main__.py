"""The command: python -m attack --calls N --files N --kills N --numbers N [--json OUT]."""

from attack.run import main

main()
