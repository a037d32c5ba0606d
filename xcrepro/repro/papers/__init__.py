"""What items share, a folder per paper: ``_common.py``, and ``<item>.py`` of an item that has more than its notebook holds."""
