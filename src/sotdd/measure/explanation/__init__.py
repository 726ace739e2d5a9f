"""Why two datasets are as far apart as they are: features or labels, which features and which classes."""
