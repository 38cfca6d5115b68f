"""What the dialects share: values, JSON, losses, media, tools, state and the shape of a dialect itself."""
