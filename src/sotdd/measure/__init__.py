"""The verbs: distance, pairwise, rank, test, drift, explain."""
