"""The engines that do the arithmetic, and the one loop over projections that every sliced distance goes through."""
