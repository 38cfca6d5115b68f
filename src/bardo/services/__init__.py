"""The services of a running gateway: facts about providers, accounts, payments, telemetry, and the layers of calls."""
