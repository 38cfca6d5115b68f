"""bardo's laws of a model server, asked of any server: well-formed streams, thinking that is kept, whole calls of tools, errors told.

Replies are read as they came, without the decoders of bardo, which forgive much.
"""
