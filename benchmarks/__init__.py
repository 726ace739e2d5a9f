"""Speed, memory and growth, measured and printed as ratios; kept out of the tests."""
