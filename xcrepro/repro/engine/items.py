"""The one door for a notebook: an item of the manifest with the parameters of this run."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from xcrepro.core import paths
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.repro.drawing import figures, tables
from xcrepro.repro.engine import compare_outputs, manifest, notebooks, prose_numbers, recorded, rounding, run_log

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PAPERS = "xcrepro.repro.papers"
INPUTS = "xcrepro.repro.inputs"
EVIDENCE = "xcrepro.repro.published.evidence"
BESIDE = "xcrepro.repro.published.compare_with_print"


@dataclasses.dataclass(frozen=True)
class Wishes:
    """What whoever started the run asked of it: all that decides, beside its parameters, where it writes and what it refuses.

    The environment carries them from process to process, and :meth:`asked` is the only place that reads it.
    """

    folder: str = ""
    """``$XCREPRO_FIGURES``: where figures and tables go in place of ``figures/``, so that nothing committed changes."""
    accepted: str = ""
    """``$XCREPRO_ACCEPT``: the item whose differences are the new state and no fault."""
    own: bool = False
    """``$XCREPRO_OWN``: the run is a sweep's or a rehearsal's own, whatever its parameters are, and nobody reads its text."""
    redraws: bool = False
    """``$XCREPRO_REDRAW``: note also pictures whose bytes alone differ."""
    recorded: bool = False
    """The run's tables are noted as results on real data (:func:`recorded.asked`)."""
    watched: bool = False
    """The kit itself runs the notebook, to compare it or to accept it: an edited one is then a new version, and no reader's."""

    @classmethod
    def asked(cls) -> Wishes:
        given = os.environ.get
        return cls(
            folder=given("XCREPRO_FIGURES", ""),
            accepted=given("XCREPRO_ACCEPT", ""),
            own="XCREPRO_OWN" in os.environ,
            redraws=bool(given("XCREPRO_REDRAW")),
            recorded=recorded.asked(),
            watched=bool(given("XCREPRO_RECORD") or given("XCREPRO_FIGURES")),
        )


def folder(official: bool, wishes: Wishes | None = None) -> Path:
    """Where a run's figures and tables go."""
    root, moved = paths.project_root(), (wishes or Wishes.asked()).folder
    if moved:
        return root / moved
    return root / "figures" if official else root / "build" / "figures" / "other"


@dataclasses.dataclass(frozen=True)
class Item:
    """A figure or table being made. Get one with :func:`item`."""

    entry: manifest.Entry
    parameters: dict
    namespace: Mapping[str, object] = dataclasses.field(default_factory=dict, repr=False)
    """The notebook's names, which the expressions behind its typed numbers use."""
    origins: list[str] = dataclasses.field(default_factory=list, repr=False)
    """What :meth:`made_from` was told, for feet of figures and tables."""
    reads: list[str] = dataclasses.field(default_factory=list, repr=False)
    """The names of the datasets that :meth:`made_from` was told of."""
    called: list[str] = dataclasses.field(default_factory=list, repr=False)
    """What tables and feet of figures call them, the longest first."""
    made: dict[str, str] = dataclasses.field(default_factory=dict, repr=False)
    """Name of a table -> its CSV, of all that this run checked or saved."""
    moved: list[str] = dataclasses.field(default_factory=list, repr=False)
    """How files of this run differ from what is committed."""
    told: list[str] = dataclasses.field(default_factory=list, repr=False)
    """What :meth:`tell` has shown."""
    wishes: Wishes = dataclasses.field(default_factory=Wishes.asked, repr=False)

    @property
    def official(self) -> bool:
        """Whether this run is the committed one: its parameters and, unless the kit itself runs it, its code and typed numbers.

        Only then are results compared with what is committed, and only then do they go to ``figures/``.
        """
        if self.wishes.own:  # a sweep's runs are its own, also the one with the item's own parameters
            return False
        if self.wishes.accepted == self.entry.id:
            return True
        return self.parameters == self.entry.official() and (self.wishes.watched or not self.edited)

    @property
    def edited(self) -> bool:
        """Whether code or typed numbers of the notebook are not those accepted: in its file, or in the cells that have run.

        A reader of JupyterLab need not save what runs. Cells that only set parameters are no edit; their values are compared.
        """
        notebook = notebooks.read(self.entry.notebook)
        note = notebooks.accepted(notebook)
        if {**prose_numbers.note(notebook), "parameters": None} != {**note, "parameters": None}:
            return True
        known = {notebooks.text(cell["source"]).strip() for cell in notebooks.code_cells(notebook)}
        ran = (source.strip() for source in self.namespace.get("In", ()))
        return any(source not in known and not self._sets_parameters(source) for source in ran)

    @property
    def differs(self) -> str:
        """In which this run differs from the committed one, in words."""
        return told_apart(self.entry, self.parameters) or "its code or its text is edited"

    def tell(self, moved: str = "") -> None:
        """Show, below the first screen of a reader's own run, in what it differs; at its end also which numbers of the text
        ``moved``."""
        if self.wishes.own:
            return
        said = f"**A run of your own**: {self.differs}. The text describes the committed run"
        said += f"; in this one:\n\n{moved}" if moved else "."
        figures.display({"text/markdown": said}, display_id=f"{self.entry.id}, own", update=bool(self.told))
        self.told.append(said)

    def _sets_parameters(self, source: str) -> bool:
        cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": source}
        try:
            return notebooks.parameters("cell", {"cells": [cell]}).keys() <= self.parameters.keys()
        except DataError:
            return False

    @property
    def folder(self) -> Path:
        """The folder under which this run writes ``<id>.csv`` and so on; a run with other parameters has one of its own."""
        home = folder(self.official, self.wishes)
        if self.official or self.wishes.folder:
            return home
        return home / own_name(self.entry, self.parameters)

    @property
    def origin(self) -> str:
        """What this run's numbers are made from, one line; empty before :meth:`made_from`."""
        parts = list(self.origins)
        if parts and (split := self.parameters.get("split")) is not None:
            parts[-1] += f", split {split}"
        if parts and (given := self.parameters.get("predictions")):
            parts.append(f"predictions from {Path(given).name}")
        return "; ".join(parts)

    def made_from(self, *data) -> None:
        """Print what this run's numbers are made from, and put it in the foot of every figure and table from here on.

        ``data`` are datasets, mappings to them, or words such as ``"as printed in jain16, table 3"``.
        """
        self.origins.clear()
        notes = []
        for one in data:
            for part in one.values() if isinstance(one, Mapping) else [one]:
                if isinstance(part, str):
                    own = "" if self.official else importlib.import_module(BESIDE).of_others(part, data)
                    self.origins.append(own or part)
                else:
                    self.origins.append(part.origin)
                    self.reads.append(part.name)
                    title = getattr(part, "title", part.name)
                    self.called.extend([part.origin, title, title.partition(",")[0], part.name])
                    before = "" if getattr(part, "comparable", False) else "no printed results beside "
                    notes += [f"  {before}{part.name}: {note}" for note in part.notes]
        print("\n".join([f"Data: {self.origin}.", *notes]))

    def nothing_of(self, table: pd.DataFrame) -> bool:
        """Whether a table that names its datasets has none of those that this run read: all in it is recorded, or printed."""
        if "dataset" not in table or not self.called:
            return False
        named = set(table["dataset"].dropna().astype(str))
        return not any(one == own or one.startswith(f"{own},") for one in named for own in self.called)

    def name(self, part: str = "") -> str:
        """``paper/item``, or ``paper/item:part`` for an item with more than one table."""
        return f"{self.entry.id}:{part}" if part else self.entry.id

    # These print or show what they have to say and return nothing, so that a cell that ends with one shows it once.

    def check(self, table: pd.DataFrame, part: str = "", quiet: bool = False) -> None:
        """Compare ``table`` with the committed ``figures/<id>[-part].csv`` and print one line, or none if ``quiet``.

        Every cell must be equal, numbers in six significant digits. What differs is written and makes the run end with status 1
        after the notebook's last cell. With other parameters than the manifest's nothing is compared.
        """
        if not self.official:
            if self.wishes.recorded:
                recorded.note(part, table)
            if not quiet:
                print(f"{self.name(part)}: not compared, because {self.differs}")
            return
        text, file = self._claim(table, part), self._committed(part, ".csv")
        differs = ""
        # Where a picture's data are from save_figure may say otherwise, which writes the same file.
        drawn = self._committed(part, ".png").is_file()
        whole = tables.csv_text(tables.with_origin(table, self.origin), True)
        # A reader's own folder gets the file, a folder for comparing does not.
        missing = not (file if self.wishes.folder else self.folder / self._file(part, ".csv")).is_file()
        old = "" if missing else file.read_text(encoding="utf-8", errors="replace")
        if missing or (tables.without_origin(old) != text if drawn else old != whole):
            differs = self._write({".csv": whole.encode()}, part)
        else:
            run_log.note("output", str(self.folder / self._file(part, ".csv")))
        if not quiet:
            print(f"{self.name(part)}: {differs or f'{compare_outputs.counted(text)} values equal the committed run'}")

    def _claim(self, table: pd.DataFrame, part: str) -> str:
        """The table's CSV; refused where this run has made another table of that name."""
        text, name = tables.csv_text(table, committed=True), self.name(part)
        if self.made.setdefault(name, text) != text:
            rule = "must be another name for another table: this run checked or saved one of this name"
            raise ArgumentError("part", rule, repr(part), "name the part")
        return text

    def _file(self, part: str, suffix: str) -> str:
        return self.name(part).replace(":", "-") + suffix

    def _committed(self, part: str, suffix: str) -> Path:
        return paths.committed(f"figures/{self._file(part, suffix)}")

    def recorded(self, part: str | None = None, whole: bool = False, sds: bool = False) -> dict[str, pd.DataFrame]:
        """What the item found on real data, as numbers: dataset -> table, without the dataset that this run itself reads.

        The name is the dataset's key, of one of several splits ``"delicious, split 0"``; ``xc.data.registry.title`` spells it.
        ``part`` is one of the recorded tables, by default the first. ``whole`` adds what was found on all records where
        this run reads only some of a dataset of the project. ``sds`` gives the standard deviations over the splits in
        place of the means.
        """
        chosen = self.parameters.get("names", self.parameters.get("dataset"))
        own = {*([chosen] if isinstance(chosen, str) else chosen or []), *self.reads}
        if whole and not self.parameters.get("folder"):
            own -= {name for name in own if recorded.own_data(name, self.entry.root)}
        found = {one.provenance["dataset"]: one for one in map(recorded.read, recorded.files(self.entry.id))}
        others = [one for name, one in found.items() if name not in own]
        frames = {recorded.sample(one): recorded.frame(one, part, sds) for one in others}
        return {name: table for name, table in frames.items() if table is not None}

    def evidence(self, ds=None, apart=None, outcomes=None, *, printed=None, exact=None, more=()) -> pd.DataFrame:
        """What this run shows of its document's claims, compared with what is committed, beside its recorded runs.

        ``apart`` are differences by :func:`xcrepro.compare` on ``ds``; ``outcomes``, ``printed`` and ``exact`` say of a claim
        whether it holds (None: cannot tell) and what was found, on ``ds``, in print, by calculation; ``more`` are evidence of
        other data (:mod:`xcrepro.repro.published.evidence`).
        """
        of = importlib.import_module(EVIDENCE)
        parts = [of.of(ds, apart, outcomes)] if ds is not None else []
        parts += [of.printed(printed)] if printed else []
        parts += [of.exact(exact)] if exact else []
        return of.gather(self, *more, *parts)

    def beside(self, ds, table: pd.DataFrame, *sources: str) -> None:
        """Show what documents or tables (``"jain16"``, ``"jain16:table3a"``) print of this run's dataset beside what it found.

        ``table`` is in the unit of print: model, metric, k, value, low and high, and ``state`` where a model was calibrated
        (:mod:`xcrepro.repro.published.compare_with_print`). If nothing is printed of this dataset, nothing is shown.
        """
        of = importlib.import_module(BESIDE)
        found = of.beside(ds, table, sources)
        run_log.note("beside", of.noted(table))
        if why := of.why_none(ds, sources) if not len(found) else "What is printed of this dataset, beside this run:":
            print(why)
        for why in of.why_apart(ds, (id.partition(":")[0] for id in found["table"])):
            print(f"{why}, so ours is another experiment.")
        if len(found):
            tables.display(tables.show(found))

    def verdicts(self, evidence: pd.DataFrame) -> None:
        """Save and show the claims that this notebook tests with their verdicts, by :meth:`evidence`: first those that data
        decide, then those about print and formulas."""
        of = importlib.import_module(EVIDENCE)
        table = of.verdicts(self, evidence)
        self.save_table(table, part="claims")
        for part in of.apart(table, evidence):
            tables.display(tables.show(part))

    def equal(self, what: str, /, **ways: float) -> None:
        """Print the one number that several ways (``by_hand=``, ``call=``, ``table=``) give, or raise ``Disagreement``.

        With a reader's own parameters it is only printed that they differ, because the reader's results come first.
        """
        try:
            rounding.equal(what, **ways)
        except rounding.Disagreement as difference:
            if self.official or self.wishes.recorded:
                raise
            print(f"{self.name()}: two ways to a number differ on these data: {difference}")

    def check_text(self) -> None:
        """Compare the numbers typed in the notebook's text with this run, by the expressions in the comments behind them.

        The last call of a notebook; it prints one line, which speaks of the run's tables as well. What is not so is raised as
        ``TypedFault``, and `xcrepro accept` writes numbers that moved into the text. Of a reader's own run the line says that
        the text describes the committed one, and the numbers that moved are listed under the first screen.
        """
        run_log.note_peak()
        notebook = notebooks.read(self.entry.notebook)
        if not self.official:
            moved = "" if self.wishes.own else prose_numbers.moved(notebook, self.namespace)
            self.tell(moved or "- every number of the text is the same in this run")
            what = "the text describes the committed run; the tables and the verdicts are those of yours"
            print(f"{self.name()}: {what}")
            return
        found = prose_numbers.faults(notebook, self.namespace)
        said = [f"cell {one.held.cell + 1}: {one.why}" for one in found]
        if self.wishes.accepted == self.entry.id and all(one.now for one in found):
            for one in found:
                run_log.note("typed", json.dumps([one.held.cell, one.held.start, one.held.written, one.now]))
            found = []
        if found and not compare_outputs.elsewhere():
            if self.wishes.accepted or not self.edited:
                raise prose_numbers.TypedFault(f"{self.name()}: the text is not what the run says: {'; '.join(said)}")
            for one in said:  # a new version of the notebook, which nobody has accepted yet
                run_log.note("moved", f"notebooks/{self.entry.id}.ipynb, {one}")
        values = sum(map(compare_outputs.counted, self.made.values()))
        equal = f"{len(self.moved)} files differ" if self.moved else f"{values} values equal the committed run"
        words = f"differ here: {'; '.join(said)}" if found else "hold"
        print(f"{self.name()}: {equal}; {len(prose_numbers.held(notebook))} numbers and statements of the text {words}")

    def save_figure(self, fig: Figure, table: pd.DataFrame, part: str = "", origin: str = "") -> None:
        """Write the figure and the table behind it into this run's folder as ``<id>[-part].*``, and show it.

        ``table`` must hold every number that is drawn, else ``DrawingFault`` is raised. The CSV is compared as
        :meth:`check` does. The pictures are written if their data or their code changed. ``origin`` replaces what
        :meth:`made_from` said; where nothing of this run's datasets is in the table, it does not name them.
        """
        origin = origin or self.origin
        if not self.official and self.nothing_of(table):
            run_log.note("apart", self._file(part, ".png"))
            for own in self.called:
                origin = origin.removeprefix(own)
            origin = origin.lstrip("; ")
        cells = notebooks.code_cells(notebooks.read(self.entry.notebook))
        code = figures.code_digest(
            module_of(self.entry.id), "\n".join(notebooks.text(cell["source"]) for cell in cells)
        )
        contents = figures.render(fig, table, code, origin)
        self._claim(table, part)
        self._write(contents, part)
        link = {"xcrepro": {"link": self._link(fig, part)}} if self.official else None
        figures.display(contents[".png"], metadata=link)

    def _link(self, fig: Figure, part: str) -> str:
        """Markdown for the committed picture, from the notebook's place; its title is the text for who cannot see it."""
        title = " ".join(fig.get_suptitle().split()) or self.entry.title
        words = title.translate(str.maketrans({"[": "(", "]": ")", "$": None, "\\": None}))
        up = "../" * (self.entry.id.count("/") + 1)
        return f"![{words}]({up}figures/{self.name(part).replace(':', '-')}.png)"

    def save_table(self, table: pd.DataFrame, decimals: tables.Decimals = 3, part: str = "", origin: str = "") -> None:
        """Write the table's files into this run's folder; the arguments are those of :meth:`save_figure`.

        ``decimals``, a number or column -> number, is for the markdown form, which is committed only where a page links it, and
        made by ``xcrepro table`` where not. The CSV is compared and exact.
        """
        self._claim(table, part)
        contents = tables.render(table, decimals, origin or self.origin)
        if self.official and not self._committed(part, ".md").is_file():
            del contents[".md"]
        self._write(contents, part)

    def _write(self, contents: dict[str, bytes], part: str) -> str:
        """Write a table's or figure's files; how they differ from what is committed, empty where they do not."""
        files = {suffix: self.folder / self._file(part, suffix) for suffix in contents}
        for file in files.values():
            run_log.note("output", str(file))
        if not self.official:
            paths.write_together({files[suffix]: content for suffix, content in contents.items()})
            return ""
        differs = self._differs(contents, part)
        accepts = self.wishes.accepted == self.entry.id
        # With other libraries a clone's files stay as they are; a reader's own folder gets what was drawn.
        stays = compare_outputs.elsewhere() and paths.is_clone() and all(file.is_file() for file in files.values())
        if self.wishes.folder:
            paths.write_together({files[suffix]: content for suffix, content in contents.items()})
        elif accepts or not stays:
            chosen = [suffix for suffix, file in files.items() if suffix in differs or not file.is_file()]
            paths.write_together({files[suffix]: contents[suffix] for suffix in chosen})
        if not differs or accepts:
            return ""
        said = next(iter(differs.values()))
        self.moved.append(said)
        if compare_outputs.elsewhere():
            run_log.note("elsewhere", said)
        elif self.wishes.folder:
            raise compare_outputs.NotTheSame(f"{said}: run `xcrepro run {self.entry.id}` and look at what changes")
        else:
            run_log.note("moved", said)
        return said

    def _differs(self, contents: dict[str, bytes], part: str) -> dict[str, str]:
        """Suffix -> how that file differs from the committed one, in words; pictures by what they are drawn from."""
        found: dict[str, str] = {}
        for suffix, content in contents.items():
            name, file = f"figures/{self._file(part, suffix)}", self._committed(part, suffix)
            if not file.is_file():
                found[suffix] = f"{name} is new"
                continue
            old = file.read_bytes()
            if suffix in (".svg", ".png"):
                if suffix == ".svg" and figures.drawn_from(old) != figures.drawn_from(content):
                    found[suffix] = f"{name} is of other code or data"
                elif ".svg" in found:
                    found[suffix] = f"{name} goes with it"
                elif self.wishes.redraws and old != content:
                    run_log.note("redrawn", name)
            elif old != content:
                found[suffix] = f"{name}: {compare_outputs.difference(old.decode(errors='replace'), content.decode())}"
        return found


def module_of(id: str) -> ModuleType | None:
    """The module of an item, ``papers/<paper>/<item>.py`` of the package; None where a project has no such file."""
    name = f"{PAPERS}.{id.replace('/', '.')}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not name.startswith(error.name or "?"):
            raise
        return None


def told_apart(entry: manifest.Entry, values: Mapping[str, object]) -> str:
    """The parameters that are not the committed ones, each with the committed value, as Markdown; empty where all are."""
    official = entry.official()
    differ = [name for name, value in values.items() if name not in official or value != official[name]]
    given = [", ".join(f"`{name} = {of[name]!r}`" for name in differ if name in of) for of in (values, official)]
    set_to, instead = given
    return f"{set_to} (committed: {instead or 'no such parameter'})" if differ else ""


def own_name(entry: manifest.Entry, values: Mapping[str, object]) -> str:
    """A folder's name for a reader's own run: the parameters that are not the notebook's own."""
    official = entry.official()

    def words(name: str, value: object, short: bool) -> str:
        if short and name in ("folder", "predictions"):
            return Path(str(value)).name
        return "+".join(map(str, value)) if isinstance(value, list) else str(value)

    differ = {name: value for name, value in values.items() if value != official.get(name)}
    short, whole = (",".join(f"{n}={words(n, value, cut)}" for n, value in differ.items()) for cut in (True, False))
    found = re.sub(r"[^\w.,=+-]", "_", short) or "own"
    if len(found) <= _LONGEST and found == (whole or "own"):
        return found
    return f"{found[:_LONGEST]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


_LONGEST = 100


def check_parameters(entry: manifest.Entry, values: Mapping[str, object]) -> None:
    """Refuse parameters that a run could not use, before it runs: by type, and by the rules of the item's module or of
    its data."""
    notebooks.check_values(entry.id, notebooks.parameters(entry.notebook), dict(values))
    module = module_of(entry.id)
    if module is None and _takes_inputs(entry):
        importlib.import_module(f"{INPUTS}.parameters").check(values)
    elif rule := getattr(module, "check_parameters", None):
        rule(values)


def _takes_inputs(entry: manifest.Entry) -> bool:
    """Whether the notebook gets its data where the names of parameters have rules."""
    cells = notebooks.code_cells(notebooks.read(entry.notebook))
    return any(INPUTS in notebooks.text(cell["source"]) for cell in cells)


def item(id: str, namespace: Mapping[str, object], /) -> Item:
    """The item ``id`` (``paper/name``) with the parameters of this run: ``item = repro.item("jain16/table3", globals())``.

    ``namespace`` is the notebook's ``globals()``; exactly the names of its parameters cell are taken from it.
    """
    run_log.watch()
    entries = manifest.load()
    if id not in entries:
        raise ArgumentError("id", "must be an item of notebooks/manifest.toml", repr(id), "`xcrepro list` shows them")
    entry = entries[id]
    names = notebooks.parameters(entry.notebook)
    if missing := [name for name in names if name not in namespace]:
        rule = f"needs the parameters {', '.join(names)}"
        raise ArgumentError(f"item {id}", rule, f"none named {missing[0]}", "pass globals()")
    values = {name: notebooks.plain(namespace[name]) for name in names}
    check_parameters(entry, values)
    found = Item(entry, values, namespace)
    if not found.official:
        found.tell()
    return found
