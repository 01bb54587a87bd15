"""The month up to which a model knows what changed: dated changes, the estimator, and the report."""
