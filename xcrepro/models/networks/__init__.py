"""Networks that stand in for those of the papers, trained in a fixed order."""
