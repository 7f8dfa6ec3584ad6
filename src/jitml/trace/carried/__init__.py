"""Loop-carried variables: what of a name, an array, a list or a size goes from one iteration to the next."""
