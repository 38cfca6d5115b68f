"""The cache of replies: which calls may be answered by a kept one, by which identity it is found, and what is kept of a reply."""
