"""One file for each form of the tables of keys."""
