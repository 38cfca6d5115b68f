"""The Cohere dialect, tested from both sides of the wire."""
