"""Cards for datasets, models, metrics and Spaces, written from manifests and results."""
