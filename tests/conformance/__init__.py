"""Suites that run over all recorded replies, whatever dialect they are in."""
