"""Models under evaluation: what each can do (``model.py``), and where its scores and replies come from."""
