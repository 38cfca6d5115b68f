"""Typed answers: how one is asked for, held while it arrives, read, and asked for again."""
