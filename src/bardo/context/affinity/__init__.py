"""Layer 6: calls go where their prompt's beginning is probably still cached, as far as that is worth more than what it costs."""
