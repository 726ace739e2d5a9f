"""What everything else stands on: errors, checks of settings, words, files, memory, progress."""
