"""Tests of the Bedrock InvokeModel dialect."""
