"""Our tasks for other harnesses, lm-evaluation-harness and inspect-ai; see docs/adapters.md."""
