"""The cache of replies: which calls a stored reply may answer, the identity it is found by, and the parts of it that are stored."""
