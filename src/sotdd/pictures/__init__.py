"""Pictures of results, and the page that a report is. Results find them through `sotdd.results.drawing`."""
