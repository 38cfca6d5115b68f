"""What flows through bardo: requests, events, responses, reasoning, usage, errors. Standard library and msgspec only."""
