"""`stoic bench`: what a step costs, beside rivals."""
