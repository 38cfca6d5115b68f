"""Payments for calls by x402: what a provider asks, the signature, the ledger, and what became of each payment."""
