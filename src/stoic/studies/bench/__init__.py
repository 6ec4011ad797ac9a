"""The benchmark of `stoic bench`: the cost of a step, beside rivals."""
