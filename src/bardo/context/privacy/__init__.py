"""Personal data in a call: found in the request, replaced by placeholders, and put back into the reply."""
