"""The engine for torch, on a processor or a GPU."""
