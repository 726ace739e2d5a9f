"""What every package uses: errors, checks of settings, text, files, memory, progress and random streams."""

__version__ = "0.1.0"
