"""The networks that stand in for deep models: time and memory of fit and predict on one core, beside one-vs-rest.

Each in a process of its own on TIB, as in ``classics``; P@1, 3, 5 stand beside the times.
"""

from __future__ import annotations

from benchmarks import classics

MODELS = {
    "OneVsRest": "OneVsRest()",
    "Neural": "NeuralOneVsAll()",
    "Attention": "LabelAttention()",
    "Two towers": "TwoTowers()",
    "Two towers + graph": "GraphTowers()",
    **{f"Clusters, {kind}": f"ClusterNetwork({kind!r})" for kind in ("none", "random", "k-means", "learned")},
    "Clusters, two levels": "ClusterNetwork(levels=2)",
}


def run(quick: bool = False) -> list[dict]:
    """Every network once; ``quick`` takes few records, to see that everything runs."""
    points = 200 if quick else 4000
    return classics.measured(
        f"Stand-ins for deep models, TIB, {points:,} records, one core: training", MODELS, points, 1
    )
