"""The leaderboard: a page, tables, figures and a Parquet file of scores, written from result files."""
