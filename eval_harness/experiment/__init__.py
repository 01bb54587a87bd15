"""An experiment: methods x months trained, every model scored on every month, and what came of it shown."""

from __future__ import annotations

from temporalwiki.eval_harness.experiment.recipe import Experiment, read_experiment
from temporalwiki.eval_harness.experiment.report import show
from temporalwiki.eval_harness.experiment.run import Progress, run_experiment

__all__ = ["Experiment", "Progress", "read_experiment", "run_experiment", "show"]
