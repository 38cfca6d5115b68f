"""What becomes of the bytes that answer an `Attempt`: frames, events, the stages that they pass, typed answers, and the receipt. Pure."""
