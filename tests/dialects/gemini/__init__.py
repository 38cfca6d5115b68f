"""The Gemini dialect, tested from both sides of the wire."""
