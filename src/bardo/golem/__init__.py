"""The documents' agent as a preset: what its subsystems answer with, and how they think."""
