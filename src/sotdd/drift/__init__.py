"""How batches are watched: a reference, a gate, a monitor and its log."""
