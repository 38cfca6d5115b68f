"""Which tools a request gets: those that the question needs, or three functions by which the model finds the others itself."""
