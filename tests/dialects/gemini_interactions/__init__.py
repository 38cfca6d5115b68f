"""Tests of the Gemini Interactions dialect."""
