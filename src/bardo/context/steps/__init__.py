"""Layers that shorten or order a prompt: compress, dedup, relevance and format shorten it; reorder and constraints order and repeat."""
