"""One request's life, without a socket: where it goes, what is sent, and what the reply's bytes become."""
