"""Who does the arithmetic. Each engine offers the same few verbs."""
