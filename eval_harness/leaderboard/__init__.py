"""The leaderboard: who wins, on what, and whether the difference is more than chance."""
