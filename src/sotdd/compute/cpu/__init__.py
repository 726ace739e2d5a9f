"""The engine for processors."""
