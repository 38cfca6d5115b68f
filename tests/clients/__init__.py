"""Coding agents as people install them, run against a gateway over strict simulated providers."""
