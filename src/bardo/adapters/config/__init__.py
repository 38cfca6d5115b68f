"""`bardo.toml` and the environment, as typed settings."""
