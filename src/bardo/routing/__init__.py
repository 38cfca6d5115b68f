"""Who answers and how: intents, tiers, profiles and what they cost. Pure: time, randomness and rows are arguments."""
