"""Methods that the documents' tables compare with: each by its paper's algorithm, on sums in a fixed order.

``xcrepro/models/linear.py``, ``plt.py`` and ``fastxml.py`` have those that the other notebooks train. These here make the old
tables whole. Where neither the paper nor its program fixes a parameter, the default was chosen on a random fifth of Bibtex's
train points (``held`` in the class's text), never on test points.
"""
