"""The panel: web pages about calls, costs and providers, which the gateway serves at `/panel`. Loaded with the first request to it."""
