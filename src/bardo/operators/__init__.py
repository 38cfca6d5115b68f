"""The programs that an operator runs against servers: the probe, and the checks of conformance."""
