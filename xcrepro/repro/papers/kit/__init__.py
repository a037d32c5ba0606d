"""Items that belong to no paper."""
