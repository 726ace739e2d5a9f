"""The command line, which parses, calls the library and prints."""


def main() -> None:
    """Run the program ``sotdd``; exit code 130 where it is interrupted, also while libraries are loaded."""
    try:
        from sotdd.cli.app import main as run  # importing sotdd.demo must not load the command line

        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


__all__ = ["main"]
