"""What the site calls the documents, and the other folders of notebooks."""

DOCUMENTS = {
    "xcrepo": (
        "The Extreme Classification Repository",
        "Bhatia, Dahiya, Jain, Kar, Mittal, Prabhu, Varma, since 2016: datasets, format, metrics, 21 benchmark tables.",
    ),
    "jain16": (
        "Propensity-scored losses",
        "Jain, Prabhu, Varma, KDD 2016: Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other "
        "Missing Label Applications.",
    ),
    "reeval": (
        "Binned macro-F1",
        "Re-evaluating Extreme Multi-label Text Classification Methods in Tail Label Prediction.",
    ),
    "calibration": (
        "Calibration@k",
        "Ullah, Schultheis, Zhang, Babbar: Labels in Extremes: How Well Calibrated are Extreme Multi-label Classifiers? Read "
        "as the preprint; printed at KDD 2025 as How Well Calibrated are Extreme Multi-label Classifiers? An Empirical "
        "Analysis.",
    ),
    "coverage": ("Coverage@k", "A paper on coverage of the tail: coverage@k, greedy inference, COV-PLT."),
    "schultheis23": (
        "Expected test utility",
        "Schultheis, Wydmuch, Kotłowski, Babbar, Dembczyński, NeurIPS 2023: Generalized test utilities for long-tail "
        "performance in extreme multi-label classification.",
    ),
    "schultheis24": (
        "Macro-at-k metrics",
        "Schultheis, Kotłowski, Wydmuch, Babbar, Borman, Dembczyński, ICLR 2024: Consistent algorithms for multi-label "
        "classification with macro-at-k metrics.",
    ),
    "beyond": ("Beyond the papers", "Questions that no document asks, such as when a metric misleads."),
    "kit": (
        "The kit itself",
        "What belongs to no document: how near the synthetic data come to real data, and a model of your own.",
    ),
}
"""Folder of items -> its page's title and one line. Others (a sixth paper) get the folder's name."""
