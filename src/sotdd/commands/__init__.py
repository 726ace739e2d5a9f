"""The command line: parse, call, print. One file per command."""

from sotdd.commands.app import app, main

__all__ = ["app", "main"]
