"""What is sent for a request: its route, its target's form of it, and what was changed or lost by that. Pure; ends in an `Attempt`."""
