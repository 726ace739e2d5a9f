"""MLflow reports its use over the network unless it is told not to, before it is loaded."""

import os

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
