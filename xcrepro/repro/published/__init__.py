"""Every number that the five documents print, and what follows from comparing them.

``table`` and ``find`` give the record, one printed value a row; ``wide`` shows a table as the document does; ``audit``
runs every check over all of it; ``shared`` lists what two documents print of the same thing. ``explain`` looks for the
definition that a number is of. ``claims`` gives what a document says in words, and sets it against evidence.
"""

# At once, not when first used: otherwise the module ``audit`` would take the place of the function.
from xcrepro.core import plugins
from xcrepro.repro.published.audit import audit, doubted, shared
from xcrepro.repro.published.claims import Claims, claims
from xcrepro.repro.published.printed_tables import (
    about,
    find,
    formulas,
    listed_as,
    methods,
    names,
    references,
    sources,
    table,
    wide,
    words,
)

__all__ = [
    "Claims",
    "about",
    "audit",
    "claims",
    "doubted",
    "find",
    "formulas",
    "listed_as",
    "methods",
    "names",
    "references",
    "shared",
    "sources",
    "table",
    "wide",
    "words",
]


def __getattr__(name: str):
    return plugins.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *plugins.names(__name__)})
