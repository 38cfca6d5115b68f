"""Batches: requests that are taken as one file, run through the batch APIs of providers, and answered as one file."""
