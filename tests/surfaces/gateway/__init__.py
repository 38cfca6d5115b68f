"""The gateway, asked over real sockets."""
