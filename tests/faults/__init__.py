"""What the world does to this program: a table, a file of tests for each of its rows."""
