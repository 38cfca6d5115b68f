"""Which tools a request gets: those that belong to what is asked, or three functions by which the model finds the others itself."""
