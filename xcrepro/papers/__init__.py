"""What items share, a folder a paper: ``<paper>/_common.py``, and ``<paper>/<item>.py`` of an item that has more than its
notebook holds; ``kit`` has the items that belong to no paper.
"""
