"""Tests of the simulated providers."""
