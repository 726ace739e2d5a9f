"""The frozen nouns that calls return, and how they read."""
