"""The facts of providers and models while bardo runs: prices, health, lists of models, and what servers say of themselves."""
