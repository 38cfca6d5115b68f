"""The Ollama dialect, tested from both sides of the wire."""
