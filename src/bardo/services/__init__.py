"""What a running gateway keeps: facts about providers, accounts, payments, telemetry, and the layers of calls."""
