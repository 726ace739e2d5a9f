"""Doors to other libraries: scikit-learn and torchmetrics, each with a module and an extra of its own."""
