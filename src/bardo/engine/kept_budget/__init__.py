"""A budget of thinking that the gateway keeps for a server that cannot: the thought is cut and ended, and the answer asked for."""
