"""One file for each form of the tables of the reasoning memory."""
