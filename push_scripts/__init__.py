"""Publishing of monthly revisions to the Hugging Face Hub."""
