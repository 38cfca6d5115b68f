"""HTTP to providers, and the keys that go with it."""
