"""Databases: the log, state that processes share, memory, and the stored parts of replies."""
