"""bardo: an LLM gateway and library."""
