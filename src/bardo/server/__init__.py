"""The HTTP/1.1 server: its protocol, its limits, its workers, and how it stops."""
