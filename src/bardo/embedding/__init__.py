"""Texts as vectors, and their form as numbers, without a library: what routing and the layers of a call both build on."""
