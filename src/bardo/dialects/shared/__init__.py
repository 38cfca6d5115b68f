"""The common parts of the dialects: values, JSON, losses, media, tools, state and the shape of a dialect itself."""
