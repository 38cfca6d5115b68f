"""Facts as people read them: tables, words for numbers, and the sign that a model thinks."""
