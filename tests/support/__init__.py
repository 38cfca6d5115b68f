"""What the tests of gateway and library share: a gateway over simulated providers, and clients to ask it with."""
