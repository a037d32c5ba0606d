"""``evaluate``, ``explain``, ``audit``, ``certainty``: saved predictions, one's own tables, printed numbers."""

from __future__ import annotations

import sys
from pathlib import Path

from xcrepro.core.errors import ArgumentError
from xcrepro.tools.commands import blocks, shared

PLACES = 100
"""Read at least: more than are asked for tell more about what does not fit, about ties and what a re-ranker could do."""
MOST_CHANGED = 10


def add(command) -> None:
    sub = command("evaluate", _evaluate, "every ranking metric of saved predictions")
    option = sub.add_argument
    option(
        "truth",
        type=Path,
        nargs="?",
        help="test labels in any format that `xcrepro convert --list` shows: a label file, a dataset, qrels, ...; or the name "
        "of a dataset of the catalogue, such as tib, whose train labels and label names are then used",
    )
    option("predictions", type=Path, nargs="?", help="a score matrix, a saved TopK, a run, label:score lines, ...")
    blocks.add_arguments(sub)
    option("-k", type=int, nargs="+", default=[1, 3, 5], help="default: 1 3 5")
    option(
        "--metrics",
        nargs="+",
        help="just these: names of --list, at every k or at one, such as nDCG@5, ECE@5 (scores in [0, 1]), 'binned macro-F1@5'",
    )
    option(
        "--ties",
        choices=("lowest-id", "expected", "bounds"),
        default="lowest-id",
        help="what labels of equal scores are worth: ranked by lowest id, the mean over all orders, or also the lowest and the "
        "highest value and how many rows ties decide",
    )
    shared.add_listing(sub, _metrics, "metrics there are")
    shared.add_propensities(sub)
    shared.add_hierarchy(sub)
    shared.add_reading(sub)
    shared.add_part(sub)
    shared.flag(
        sub,
        "--per-label",
        "one row per label at the largest k, with its name where it is known: the most frequent 20, with --csv all",
    )
    option(
        "--against",
        type=Path,
        metavar="PREDICTIONS",
        help="what another model says of the same rows: how much is the same (overlap@k, rank-biased overlap) and which labels "
        "come and go, by train frequency too where it is known. Needs no truth: give the two files of predictions alone",
    )
    shared.flag(sub, "--csv", "full precision, as CSV")

    sub = command(
        "explain", _explain, "which definition of a metric gives a printed number? Exit status 1 when none does"
    )
    option = sub.add_argument
    option("value", help="as printed: 0.39173, 39.173 or 39.2%%; the more digits, the more it tells")
    option("truth", type=Path, help="as for evaluate")
    option("predictions", type=Path, help="as for evaluate; a score matrix tells most, for ties")
    option("--metric", help="what it is said to be: P, nDCG, PSP@3, ...")
    option("-k", type=int, nargs="+", help="the ks to try; default: 1 to 5, 10, 20, 50, 100, as many as there are")
    option("--train-truth", type=Path, help="training labels: their counts in the propensities, beside those of test")
    option("--A", type=float, default=0.55, help="of the propensity model, default 0.55; others are tried too")
    option("--B", type=float, default=1.5, help="of the propensity model, default 1.5")
    option("--filter", type=Path, help="the test split's filter file")
    shared.add_reading(sub)
    shared.flag(sub, "--csv", "all that was tried, full precision, as CSV")

    sub = command("audit", _audit, "check a table of your own results for numbers that cannot be true together")
    option = sub.add_argument
    option(
        "file",
        type=Path,
        help="CSV with the columns dataset, method, metric, k, value (one number a line), or dataset, method, P@1, nDCG@3, "
        "... (one method a line); dataset and method may be left out. Exit status 1 when something is found",
    )

    sub = command("certainty", _certainty, "are leads between printed numbers certain, whatever was predicted?")
    option = sub.add_argument
    option("printed", nargs="+", help="two numbers or more of the same test points, as printed, percent: 54.23")
    option("-n", type=int, help="how many test points; or --dataset")
    option("--dataset", help="of the catalogue, which knows how many test points it has, and for PSP its weights")
    option("--metric", default="P", help="P (the default; nDCG@1 is P@1) or PSP")
    option("-k", type=int, default=1, help="default: 1")
    option("--alpha", type=float, default=0.05, help="of the two-sided test; default: 0.05")
    shared.flag(sub, "--fractions", "the numbers are fractions, not percent")


def _metrics():
    from xcrepro.core.metrics import registry

    return registry.table()


def _evaluate(arguments) -> int:
    from xcrepro.core.metrics import confusion, corrected_ece, precision_ceiling, registry
    from xcrepro.core.metrics.evaluate import evaluate

    if arguments.against is not None:
        return _against(arguments)
    if blocks.asked(arguments):
        shared.with_train_truth(arguments)
        return blocks.evaluate(arguments)
    trained = arguments.train_truth is not None or shared.names_dataset(arguments)
    if not trained:
        shared.with_train_truth(arguments)
    metrics = arguments.metrics
    if metrics is None:
        metrics = registry.default(trained, trained, ties=arguments.ties, hierarchy=arguments.hierarchy is not None)
    k_max = max(int(ks.max()) for _, ks in registry.wanted(metrics, tuple(arguments.k)))
    found = shared.read(arguments, {"": arguments.predictions}, max(k_max, PLACES))
    truth, top, ds = found.truth, found.tops[""], found.dataset
    weights = counts = None
    if found.train is not None:
        weights, counts, *_ = shared.weights(arguments, found.train, ds)
    warn(truth, top, found.train, found.exclude, metrics, ds)
    if arguments.per_label:
        names = () if found.label_names is None else found.label_names.names
        table = confusion(truth, top, max(arguments.k)).table(max(arguments.k), names)
        table = table[(table["true"] > 0) | (table["predicted"] > 0)]
        table = table.sort_values("true", ascending=False, kind="stable", ignore_index=True)
        shared.print_table(table if arguments.csv else table[:20], arguments.csv, 3)
        return 0
    about = {"metrics": metrics, "ties": arguments.ties, "hierarchy": shared.hierarchy(arguments, found)}
    table = evaluate(truth, top, tuple(arguments.k), weights, counts, **about)
    counted(truth, top, table, weights, counts)
    look(found, table, weights, counts)
    shared.print_table(table, arguments.csv, 6)
    for k in [] if arguments.csv or arguments.ties != "lowest-id" else table.loc[table["metric"] == "P", "k"]:
        most, stored = precision_ceiling(truth, top, int(k))[0], int((top.ids >= 0).sum(axis=1).max())
        if stored > k:
            what = f"the best {k} of {stored} stored places were chosen (the ceiling of a re-ranker)"
            print(f"P@{k} if {what}: {most:.6f}")
    for k in [] if arguments.csv else table.loc[table["metric"] == "ECE", "k"]:
        found = corrected_ece(truth, top, int(k))
        print(
            f"ECE@{k} without the noise of its hits: {found.corrected:.6f} (95 %: {found.low:.6f} to {found.high:.6f}); "
            f"right scores would print {found.floor:.6f}"
        )
    return 0


def _against(arguments) -> int:
    """What two models have in common; with one file beside --against, without a truth."""
    import numpy as np
    import pandas as pd

    from xcrepro.core.metrics.agreement import changed_labels, overlap, rank_biased_overlap

    rule, do = "does not go with --against", "that compares predictions with each other, not with a truth"
    shared.refuse(arguments, ("blocks", "per_label", "metrics"), rule, do)
    if arguments.ties != "lowest-id":
        raise ArgumentError("--ties", rule, arguments.ties, do)
    predictions = arguments.predictions
    if predictions is None:
        predictions, arguments.truth = arguments.truth, None
        if predictions is None:
            raise ArgumentError("predictions", "must be given beside --against", "none")
    found = shared.read(arguments, {"a": predictions, "b": arguments.against}, max(*arguments.k, PLACES))
    a, b = found.tops["a"], found.tops["b"]
    rows = [("overlap", k, value) for k, value in zip(arguments.k, overlap(a, b, arguments.k), strict=True)]
    rows.append(("rank-biased overlap (p = 0.9)", max(a.k, b.k), rank_biased_overlap(a, b)))
    shared.print_table(pd.DataFrame(rows, columns=["measure", "k", "value"]), arguments.csv, 6)
    if arguments.csv:
        return 0
    print(f"\nLabels among the first {max(arguments.k)}: a is {predictions}, b is {arguments.against}\n")
    names = () if found.label_names is None else found.label_names.names
    if found.train is not None:
        counts = np.bincount(found.train.indices, minlength=found.train.shape[1])
        shared.print_table(changed_labels(a, b, max(arguments.k), label_counts=counts), False)
        print()
    table = changed_labels(a, b, max(arguments.k), label_names=names, most=MOST_CHANGED)
    table = table[table["gone"] + table["new"] > 0]
    if table.empty:
        print("No label comes or goes")
    else:
        shared.print_table(table, False)
    return 0


def counted(truth, top, table, weights=None, counts=None) -> None:
    """Say on stderr what counts as a miss or as 0, and the first value of the table without it."""
    from xcrepro.tools import diagnose

    for line in diagnose.counted(truth, top, table["k"], first_of(table), weights, counts):
        print(f"{'warning' if 'most of them' in line else 'note'}: {line}", file=sys.stderr)


def first_of(table) -> str:
    """The first metric of a table that can be asked for by its name, such as P@1."""
    from xcrepro.core.metrics.registry import of_bin

    known = table[table["metric"].map(of_bin) == ""]
    return f"{known['metric'].iloc[0]}@{known['k'].iloc[0]}" if len(known) else f"P@{table['k'].iloc[0]}"


def look(found, table, weights=None, counts=None) -> None:
    """Say on stderr what the split is like, and the first value of the table over the labels that training has seen."""
    from xcrepro.core.metrics import state
    from xcrepro.tools import diagnose

    for finding in diagnose.first_look(found.truth, Y_train=found.train, **diagnose.of_dataset(found.dataset)):
        over = ""
        if finding.kind == "labels unseen in training" and counts.any():
            Y, top = diagnose.over_seen(found.truth, found.tops[""], counts)
            given = [one if one is None else one[counts > 0] for one in (weights, counts)]
            name = first_of(table)
            over = f" (over seen labels: {name} = {state.of(Y, top, 1, name, *given).compute()['value'][0]:.6f})"
        print(f"note: {finding}{over}", file=sys.stderr)


def warn(truth, top, train, exclude, metrics, ds=None) -> list[str]:
    """What the truth is, and what does not fit, on stderr: numbers stay as they are. Returns the kinds of what does not fit."""
    from xcrepro.tools import diagnose

    print(f"truth: {diagnose.recognise(truth, ds).text}", file=sys.stderr)
    found = diagnose.check(truth, top, Y_train=train, exclude=exclude, metrics=metrics)
    for finding in found:
        print(f"warning: {finding}", file=sys.stderr)
    return [finding.kind for finding in found]


def _audit(arguments) -> int:
    from xcrepro.repro.published.results import audit_results

    found = audit_results(arguments.file)
    for row in found.itertuples():
        name = " / ".join(part for part in (row.dataset, row.method, row.variant) if part)
        print(f"{name + ': ' if name else ''}{row.column} = {row.printed}, expected {row.expected} [{row.check}]")
        print(f"    {row.why}")
    if found.empty:
        print(f"nothing found in {', '.join(found.attrs['checked'])}")
    else:
        print(f"{len(found)} found; xcrepro.repro.published.checks derives each check")
    if others := ", ".join(found.attrs["not checked"]):
        print(f"not checked, because no metric of these names is known: {others} (`xcrepro audit --help` has the form)")
    return 0 if found.empty else 1


def _explain(arguments) -> int:
    from xcrepro.repro.drawing import tables
    from xcrepro.repro.published.explain import KS, conclusion, explain

    given = shared.read(arguments, {"": arguments.predictions}, max(KS))
    truth, top, train = given.truth, given.tops[""], given.train
    ks, (A, B) = arguments.k, (arguments.A, arguments.B)
    found = explain(arguments.value, truth, top, metric=arguments.metric, ks=ks, Y_train=train, A=A, B=B)
    agree = found["agrees"] != ""
    if arguments.csv:
        print(tables.csv_text(found).rstrip())
    else:
        print(conclusion(found))
        print(tables.show(found[: max(5, int(agree.sum()))].drop(columns="same"), decimals=found.attrs["decimals"] + 2))
    return 0 if agree.any() else 1


def _certainty(arguments) -> int:
    from xcrepro.core.data import registry
    from xcrepro.repro.published import significance_from_print

    if (arguments.n is None) == (arguments.dataset is None):
        raise ArgumentError("-n and --dataset", "must be one of the two", "both" if arguments.n else "none")
    if arguments.metric == "PSP" and not arguments.dataset:
        raise ArgumentError("--dataset", "must be given for PSP", "none", "its weights hang on the dataset")
    n, weights = arguments.n, None
    if arguments.dataset:
        entry = registry.get(arguments.dataset)
        n = entry.n_test
        weights = significance_from_print.weights_of(entry.name, arguments.k) if arguments.metric == "PSP" else None
    one = 1.0 if arguments.fractions else 100.0
    about = {"weights": weights, "alpha": arguments.alpha, "one": one}
    found = significance_from_print.in_order(arguments.printed, n, arguments.metric, arguments.k, **about)
    for lead, p in found:
        print(f"{lead}{f' After Holm: at most {p:.2g}.' if len(found) > 1 else ''}")
    if len(found) > 1:
        held = sum(p <= arguments.alpha for _, p in found)
        chance = f"were none better than the next, {arguments.alpha * len(found):.2g} at most would be expected to be"
        print(f"Certain after Holm's correction for {len(found)} comparisons: {held}; each alone, {chance}.")
    return 0
