"""What every item computes and draws: ``<paper>/<item>.py``, named after its notebook, figures and test.

An item's module has ``compute(...) -> DataFrame`` and, where they apply, ``plot(table, ..., ax=None) -> Figure`` and
``check(table) -> DataFrame``, the part of the table that another processor must give again. A further table,
``part``, has ``compute_<part>``, ``plot_<part>`` and ``check_<part>``. What two items of a paper share stands in the
paper's ``_common.py``; ``kit`` holds the items that belong to no paper.
"""
