"""The version of bardo, in one place."""

__version__ = "0.2.0"
