"""The reasoning memory: the thinking of past calls, kept beside the log and found again by its words and its meaning.

It is off by default, and stores nothing unless the log keeps content. `episodes.draft_of` takes the stored parts of a call,
`store.EpisodeStore` stores it from a thread of its own, `reasoning_memory.ReasoningMemory` searches, shows and forgets.
"""
