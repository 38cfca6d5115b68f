"""Bytes to frames and back. Everything here has `feed` and `finish`, and knows nothing of models."""
