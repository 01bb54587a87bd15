"""Experiments: train every method on every month, score every model on every month, and show the results."""

from temporalwiki.eval_harness.experiment.recipe import Experiment, read_experiment
from temporalwiki.eval_harness.experiment.report import show
from temporalwiki.eval_harness.experiment.run import CellOutcome, run_experiment

__all__ = ["CellOutcome", "Experiment", "read_experiment", "run_experiment", "show"]
