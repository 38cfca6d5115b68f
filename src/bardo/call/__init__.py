"""The life of one call, from its request to its row in the log."""
