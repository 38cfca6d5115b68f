"""Personal data in a call: found in what is sent, replaced by placeholders, and put back into what comes."""
