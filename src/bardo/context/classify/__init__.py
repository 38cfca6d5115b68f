"""The layer `classify`: how hard a request is, what it is about, what it asks for and whether it is safe, by linear heads or by rules."""
