"""Greedy coverage over blocks: what is sound where no process can go through all rows one after the other.

:func:`xcrepro.decide.greedy_coverage` gives each row the labels of largest (f + beta) times probability, where f is the
chance that no row before it hits the label. Here the blocks of a round start from the same f, which is refreshed after
the round. Blocks of one round do not know of each other, so they choose labels twice. In a second pass each block gives
its labels back and chooses anew against all others. Blocks that change their minds together run after the same labels,
so a later pass has rounds of an eighth of all blocks at most, and a round that loses expected coverage is undone.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.decide import select_against
from xcrepro.core.errors import ArgumentError
from xcrepro.core.paths import atomic_path
from xcrepro.core.predictions import TopK
from xcrepro.tools.scale import engines

Probabilities = str | os.PathLike | Callable


@dataclass(frozen=True)
class Selection:
    """What was chosen.

    Attributes
    ----------
    paths : list of Path
        For each block what :meth:`xcrepro.TopK.load` reads, in the blocks' order; the scores are the gains.
    expected_coverage : list of float
        E[Cov@k] after each pass, over all L labels, if the probabilities are right.
    """

    paths: list[Path]
    expected_coverage: list[float]

    def load(self) -> list[TopK]:
        """The blocks' selections."""
        return [TopK.load(path) for path in self.paths]


def greedy_coverage(
    blocks: Iterable[Probabilities] | Mapping[str, Probabilities],
    k: int,
    folder: str | os.PathLike,
    *,
    beta: float = 0.0,
    at_once: int = 8,
    passes: int = 2,
    engine: str = "serial",
    client=None,
    workers: int | None = None,
) -> Selection:
    """Choose k labels for each row so that as many labels as possible are hit somewhere, block by block.

    Parameters
    ----------
    blocks : iterable or mapping of paths or callables
        Files of probabilities (a sparse matrix, text or ``.npz``), or functions that return a sparse matrix (rows, L) of
        values in [0, 1], as :mod:`xcrepro.core.decide` takes them. A mapping gives names.
    k : int
        1 or more.
    folder : path_like
        Gets the selections and the label state of the round; workers see it.
    beta : float
        0 or more, as for :func:`xcrepro.decide.greedy_coverage`.
    at_once : int
        Blocks of a round. With 1 and one pass the result is that of the sequential greedy to the last bit; the more, the more
        workers have something to do, and the more is lost. Later passes have an eighth of all blocks in a round at most. The
        result depends on it, not on engine or workers.
    passes : int
        Passes over all blocks, 1 or more.
    engine, client, workers
        As for :func:`xcrepro.scale.evaluate`.

    Returns
    -------
    Selection

    Raises
    ------
    ArgumentError
        For an argument, and for probabilities that are none, with the block's name.
    """
    k, at_once, passes = (
        whole_number(name, value, 1) for name, value in (("k", k), ("at_once", at_once), ("passes", passes))
    )
    beta = real_number("beta", beta, at_least=0)
    items = [*blocks.items()] if isinstance(blocks, Mapping) else [(None, given) for given in blocks]
    if not items:
        raise ArgumentError("blocks", "must be one or more", "none")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    named = [(str(name or _name(given, number)), given) for number, (name, given) in enumerate(items)]
    if len({name for name, _ in named}) < len(named):
        raise ArgumentError("blocks", "must have names of their own", "one twice", "a dict gives names")
    targets = [folder / f"{number:06d}-{Path(name).stem}.npz" for number, (name, _) in enumerate(named)]
    labels, reached = _Labels(), []
    with engines.mapped(engine, client, workers) as run, tempfile.TemporaryDirectory(dir=folder) as shared:
        for number in range(passes):
            size = at_once if number == 0 else max(1, min(at_once, len(named) // 8))
            for first in range(0, len(named), size):
                some = range(first, min(first + size, len(named)))
                state = labels.save(Path(shared) / f"labels-{number}-{first}.npz")
                next_ = [Path(shared) / f"chosen-{i}.npz" for i in some]
                calls = [
                    (*named[i], targets[i], new, state, k, beta, number > 0) for i, new in zip(some, next_, strict=True)
                ]
                changed = labels.copy()
                for old, new, n_labels in run(_choose, calls):
                    changed.change(old, new, n_labels)
                if number == 0 or changed.expected_coverage() > labels.expected_coverage():
                    labels = changed
                    for i, new in zip(some, next_, strict=True):
                        os.replace(new, targets[i])
            reached.append(labels.expected_coverage())
    return Selection(targets, reached)


def _name(given: Probabilities, number: int) -> str:
    return Path(given).name if isinstance(given, (str, os.PathLike)) else f"block {number}"


_Chosen = tuple[np.ndarray, np.ndarray]  # labels and their probabilities, row after row


class _Labels:
    """The chance of each label that no row hits it: a product; certain hits are counted apart, to be taken out again."""

    def __init__(self) -> None:
        self.failure = np.ones(0)
        self.sure = np.zeros(0, np.int64)

    def copy(self) -> _Labels:
        """One to change."""
        new = _Labels()
        new.failure, new.sure = self.failure.copy(), self.sure.copy()
        return new

    def change(self, old: _Chosen | None, new: _Chosen, n_labels: int) -> None:
        """A block chose anew."""
        if not self.failure.size:
            self.failure, self.sure = np.ones(n_labels), np.zeros(n_labels, np.int64)
        if n_labels != self.failure.size:
            raise ArgumentError("blocks", f"must all have {self.failure.size} labels", n_labels)
        if old is not None:
            take_out(self.failure, self.sure, old)
        labels, chances = new
        np.add.at(self.sure, labels[chances == 1], 1)
        rest = chances < 1
        np.multiply.at(self.failure, labels[rest], 1.0 - chances[rest])  # one after the other, as the greedy does

    def save(self, path: Path) -> Path | None:
        """For the workers of a round; None before the first."""
        if not self.failure.size:
            return None
        with atomic_path(path) as part:
            np.savez(part, failure=self.failure, sure=self.sure)
        return path

    def expected_coverage(self) -> float:
        """The mean over labels of the chance that some row hits it."""
        return float(np.mean(1.0 - np.where(self.sure > 0, 0.0, self.failure)))


def take_out(failure: np.ndarray, sure: np.ndarray, chosen: _Chosen) -> None:
    """Divide what a block chose out of the labels' failures, in place."""
    labels, chances = chosen
    np.subtract.at(sure, labels[chances == 1], 1)
    rest = chances < 1
    # One factor a label, so that it is divided out once; where products underflowed, the label counts as hit all the same.
    factor = np.ones(failure.size)
    np.multiply.at(factor, labels[rest], 1.0 - chances[rest])
    np.divide(failure, factor, out=failure, where=(factor > 0) & (factor < 1))
    np.minimum(failure, 1.0, out=failure)


def _choose(
    name: str, given: Probabilities, before: Path, target: Path, state: Path | None, k: int, beta: float, again: bool
):
    """A task: the block's labels against the shared state; what it had chosen ``before``, what now, and L."""
    try:
        if callable(given):
            matrix = given()
        else:
            from xcrepro.core.data.read import read_sparse

            matrix = read_sparse(given)
        old, failure = None, None
        if state is not None:
            with np.load(state) as stored:
                failure, sure = stored["failure"], stored["sure"]
            if again:
                with np.load(before) as stored:
                    old = stored["chosen_labels"], stored["chosen_chances"]
                take_out(failure, sure, old)
            failure[sure > 0] = 0.0
        top, labels, chances = select_against(matrix, k, failure, beta)
    except ArgumentError as error:
        raise ArgumentError(f"block {name}: {error.argument}", error.rule, error.got, error.do) from None
    with atomic_path(target) as part:
        kept = {"chosen_labels": labels, "chosen_chances": chances}
        np.savez(part, ids=top.ids, scores=top.scores, n_labels=np.int64(top.n_labels), **kept)
    return old, (labels, chances), top.n_labels
