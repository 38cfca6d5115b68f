"""Facts about the world, as rows: who runs models, how they speak, what they cost."""
