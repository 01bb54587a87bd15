"""Our tasks in other harnesses: lm-evaluation-harness, inspect-ai, Community Evals (docs/adapters.md)."""
