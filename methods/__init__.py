"""Continual-learning methods, one file each, on one trainer."""
