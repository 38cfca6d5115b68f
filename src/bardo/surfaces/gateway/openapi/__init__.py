"""The OpenAPI document of the gateway, made from its routes, its own replies and what its dialects read."""
