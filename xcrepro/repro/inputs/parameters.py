"""The rules of the parameters that notebooks share, by the parameter's name: checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.data import locate, open_sets, registry
from xcrepro.core.data.lines import shown
from xcrepro.core.errors import ArgumentError, DataMissing
from xcrepro.repro.inputs import baselines, datasets

Rule = Callable[[str, object], object]
"""Takes the parameter's name and its value, and raises what is wrong with it."""


def check(values: Mapping[str, object]) -> None:
    """Refuse, in the notebook's own names, what a run could not use; parameters that have no rule here are not looked at."""
    for name, value in values.items():
        if rule := _RULES.get(name):
            rule(f"parameter {name}", value)
    for name in ("dataset", "names"):
        for key in _listed(values.get(name, [])):
            # With a folder any name may stand for the reader's own data.
            # A notebook without the parameter takes only what the catalogue knows of the dataset, such as to draw it.
            if (original := registry.synthetic(key)) is not None or "folder" not in values:
                registry.get(original or key)
            elif not values.get("folder"):
                locate.require(key)
            if name == "names" and values.get("folder"):
                datasets.subfolder(values["folder"], key)
    for name, other in (("scales", "names"), ("ks", "names")):
        lists = values.get(name), values.get(other)
        if all(isinstance(part, list) for part in lists) and lists[0] and len(lists[0]) != len(lists[1]):
            raise ArgumentError(f"parameter {name}", f"must be one for each of {other}, {len(lists[1])}", lists[0])


def _listed(value) -> list:
    return value if isinstance(value, list) else [value]


def _distinct(name: str, value, may_be_empty: bool = False) -> list:
    if not isinstance(value, list) or not (value or may_be_empty):
        raise ArgumentError(name, "must be a list with something in it", repr(value))
    for i, one in enumerate(value):
        if one in value[:i]:
            raise ArgumentError(name, "must hold nothing twice", repr(one))
    return value


def _list(name: str, value) -> list:
    if not isinstance(value, list):
        raise ArgumentError(name, "must be a list", repr(value))
    return value


def _number(**limits) -> Rule:
    return lambda name, value: real_number(name, value, **limits)


def _count(*limits: int) -> Rule:
    return lambda name, value: whole_number(name, value, *limits)


def _unless(absent: tuple, rule: Rule) -> Rule:
    """The rule of what is not one of ``absent``."""
    return lambda name, value: None if value in absent else rule(name, value)


def _each(values: Rule, rule: Rule) -> Rule:
    """The rule of each of a list's values."""
    return lambda name, value: [rule(name, one) for one in values(name, value)]


def _models(name: str, value) -> None:
    for model in _distinct(name, value, may_be_empty=True):
        known = baselines.plain(model) if isinstance(model, str) else model
        one_of(name, known, [*baselines.RECIPES, *baselines.VARIANTS])


def _folder(name: str, value) -> None:
    if value and not _is_there(value, Path.is_dir):
        do = "give the folder that holds the data's files, or leave it empty"
        raise DataMissing(f"{name}: {shown(value)} is no folder; {do}")


def _predictions(name: str, value) -> None:
    if value and not _is_there(value, Path.exists):
        do = "give a file or folder of saved predictions, or leave it empty"
        raise DataMissing(f"{name}: {shown(value)} is not there; {do}")


def _is_there(value, test: Callable[[Path], bool]) -> bool:
    try:
        return test(Path(value).expanduser())
    except (OSError, RuntimeError, ValueError, TypeError):  # too long a name, a user nobody knows, a NUL, no text
        return False


_RULES: dict[str, Rule] = {
    "scale": _number(above=0, at_most=1),
    "scales": _each(_list, _number(above=0, at_most=1)),
    "seed": _count(0),
    "k": _count(1, baselines.PLACES),
    # One for each dataset, so the same may come twice.
    "ks": _each(_list, _count(1, baselines.PLACES)),
    "names": _distinct,
    "models": _models,
    "model": lambda name, value: _models(name, [value]),
    "folder": _folder,
    "predictions": _predictions,
    "split": _unless((None, "mean", *open_sets.NAMED), _count(0)),
    "A": _unless((None,), _number(above=0)),
    "B": _unless((None,), _number(at_least=0)),
    "draws": _count(2),
    **dict.fromkeys(("repeats", "trainings", "trees", "places"), _count(1)),
    "shares": _each(_distinct, _number(at_least=0, below=1)),
    "percents": _each(_distinct, _number(above=0, at_most=100)),
    "curves": _each(_distinct, _number(above=0)),
}
