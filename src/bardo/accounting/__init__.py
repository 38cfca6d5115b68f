"""What calls cost: prices, and the arithmetic of costs in whole nano-dollars. Pure functions and values."""
