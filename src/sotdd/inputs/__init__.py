"""Data as people have it, turned into features and labels."""
