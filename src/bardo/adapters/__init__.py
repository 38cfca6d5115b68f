"""The outside world, knowing nothing of calls: the configuration, HTTP to providers, stores, and embedding models."""
