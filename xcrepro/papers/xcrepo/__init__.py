"""The Extreme Classification Repository."""
