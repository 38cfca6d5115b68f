"""The only room with sockets, files, clocks, the environment and randomness."""
