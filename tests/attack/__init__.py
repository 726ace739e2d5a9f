"""An attack on the whole package, before a release: ``python -m attack`` in the folder tests."""
