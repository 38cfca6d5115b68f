"""Bytes to frames and back, and text that arrives in pieces. Everything here is fed, and knows nothing of models."""
