"""Every compiled loop. A module here imports Numba or Triton, so callers import it where they use it."""
