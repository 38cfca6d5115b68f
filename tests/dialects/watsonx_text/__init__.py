"""Tests of the watsonx text generation dialect."""
