"""The command line: parse, call, print. One module for each command."""


def main() -> None:
    """Run the program ``sotdd``."""
    from sotdd.commands.app import main as run  # what only commands need is not loaded with the demonstration

    run()


__all__ = ["main"]
