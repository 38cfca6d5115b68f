"""The keys by which clients come: who they are, what they may ask for, and how much of it."""
