"""One file for each simulated provider: what it does differently from the dialect it speaks."""
