"""The migrations of the tables of batches."""
