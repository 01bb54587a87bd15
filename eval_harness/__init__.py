"""Metrics, tasks, statistics and the leaderboard."""
