"""Where people and programs arrive."""
