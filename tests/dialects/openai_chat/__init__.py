"""Tests of OpenAI Chat Completions and the servers compatible with it."""
