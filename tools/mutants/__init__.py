"""Measure how many small faults in `src` the tests catch: `make mutants`, or `python -m mutants --help` in `tools`."""
