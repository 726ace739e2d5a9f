"""Pictures of results: matplotlib's, and the page that a report is. Results find them through `sotdd.drawing`."""
