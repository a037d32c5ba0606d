"""Metrics of the complete truth, from an incomplete one and a few judged rows.

Test labels are incomplete: a prediction that counts as wrong may be right, and only nobody has recorded it. Here people
or programs look at the predictions of a few rows, **drawn at random**, and say which are right
(:func:`xcrepro.judged.sample`, :func:`xcrepro.judged.sheet`). :func:`xcrepro.judged.estimate` then says what a metric is on
the complete truth, with an interval: it takes the metric on the observed truth, which is known for all rows, and corrects
it by what the judged rows show to be missing. :func:`xcrepro.judged.compare` does the same for the gap between models,
:func:`xcrepro.judged.bounds` says how far the unjudged could move a metric, :func:`xcrepro.judged.next_rows` which rows to
judge next. :class:`xcrepro.judged.Judged` shares the work between several of these.

For a metric that is a mean over rows, let f be a row's value on the observed truth and y its value on the complete one.
With n of N rows judged, the estimate is

    mean of y over the judged + weight * (mean of f over all - mean of f over the judged)

With weight 1 it is prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Science 2023), with
the weight cov(y, f) / var(f), kept within 0 and 1, its power-tuned form (Angelopoulos, Duchi and Zrnic, PPI++, 2023),
with 0 the judged rows alone. There the rows with a prediction only are others than the judged ones; here the judged
rows are some of all, as in the difference and regression estimators of survey sampling (Cochran, Sampling Techniques,
1977, chapter 7). So PPI++'s factor 1 / (1 + n / N) drops out, and the squared error is

    (1 - n / N) var(y - weight f) / n          about the rows at hand
    ... + var(y) / N                           about fresh rows of the same kind
"""

from xcrepro.core.judged.estimates import Judged, bounds, compare, estimate
from xcrepro.core.judged.sampling import estimated, next_rows, sample
from xcrepro.core.judged.sheets import DRAWN as DRAWN
from xcrepro.core.judged.sheets import JudgedWarning, Verdicts, agreement, lines_of, sheet, texts_of, verdicts

__all__ = [
    "Judged",
    "JudgedWarning",
    "Verdicts",
    "agreement",
    "bounds",
    "compare",
    "estimate",
    "estimated",
    "lines_of",
    "next_rows",
    "sample",
    "sheet",
    "texts_of",
    "verdicts",
]


def __dir__() -> list[str]:
    return __all__
