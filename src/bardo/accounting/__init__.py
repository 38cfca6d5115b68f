"""The costs of calls: prices, and the arithmetic of costs in whole nano-dollars. Pure functions and values."""
