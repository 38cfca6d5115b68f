"""Databases: the log, state that processes share, memory, and what is kept of replies."""
