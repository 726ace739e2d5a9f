"""The paper's experiments and our own studies; README.md says how to run them."""
