"""Doors to other libraries: MLflow, scikit-learn and torchmetrics, each with a module and an extra of its own."""
