"""Jain, Prabhu, Varma, KDD 2016: propensity-scored losses."""
