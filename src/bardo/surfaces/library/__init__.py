"""bardo without a server: the same engine, called from Python."""
