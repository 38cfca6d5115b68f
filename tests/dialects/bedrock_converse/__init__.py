"""Tests of the Bedrock Converse dialect."""
