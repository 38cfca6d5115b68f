"""The gateway: OpenAI's, Anthropic's and Google's endpoints over every configured provider. An ASGI application."""
