"""Tests of the Responses dialect."""
