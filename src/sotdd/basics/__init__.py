"""What every room uses: errors, checks of settings, text, files, memory, progress and random streams."""
