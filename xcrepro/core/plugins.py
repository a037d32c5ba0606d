"""What other wings serve under names of this one, such as ``xc.metrics.threshold_curve`` and the formats of other tools.

The core imports no other wing. A wing that adds to a room says so in its ``__init__``, with :func:`serve`, and the module is
imported when the name is used.
"""

from __future__ import annotations

import importlib

_PLACES: dict[str, dict[str, tuple[str, bool]]] = {}


def serve(room: str, module: str, *names: str) -> None:
    """Say that ``names`` of ``room`` are found in ``module``, both modules in full; without names it is the module itself."""
    served = dict.fromkeys(names, (module, True)) if names else {module.rpartition(".")[2]: (module, False)}
    _PLACES.setdefault(room, {}).update(served)


def names(room: str) -> list[str]:
    """Every name that is served in a room."""
    return sorted(_PLACES.get(room, {}))


def place(room: str, name: str) -> str | None:
    """The module that serves a name of a room; None where none does."""
    return _PLACES.get(room, {}).get(name, (None, False))[0]


def find(room: str, name: str):
    """What is served under a name of a room; AttributeError where nothing is, as of a module."""
    if name not in _PLACES.get(room, {}):
        raise AttributeError(f"module {room!r} has no attribute {name!r}")
    module, inside = _PLACES[room][name]
    found = importlib.import_module(module)
    return getattr(found, name) if inside else found
