"""Data quality suites (Great Expectations) over plain DataFrames, and the runner that reports every failing row."""
