"""Routing that learns which model answers which kind of request well. Pure: files, time and seeds are arguments."""
