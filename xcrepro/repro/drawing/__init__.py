"""Figures and tables of items: what is drawn and written, in one style."""
