"""One file a revision, oldest first. A file that was released never changes."""
