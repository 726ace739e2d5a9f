"""The command line: one module for each command, which parses, calls the library and prints."""


def main() -> None:
    """Run the program ``sotdd``."""
    from sotdd.commands.app import main as run  # importing sotdd.demo must not load the command line

    run()


__all__ = ["main"]
