"""Runs the layers that work on a call before it is sent: chooses them by profile, performs their effects, keeps their receipts."""
