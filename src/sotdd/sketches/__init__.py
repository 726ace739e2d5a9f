"""Datasets seen through projections once and compared ever after: made, merged, saved."""
