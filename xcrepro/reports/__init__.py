"""From a truth and the predictions of one or several models to one report: ``xc.report`` and ``xcrepro report``.

:mod:`~xcrepro.reports.given` reads what is handed in, :mod:`~xcrepro.reports.compute` makes the numbers,
:mod:`~xcrepro.reports.sentences` says what they come to, :mod:`~xcrepro.reports.figures` draws them,
:mod:`~xcrepro.reports.latex` and :mod:`~xcrepro.reports.html` write them, :mod:`~xcrepro.reports.report` holds it all together.

The package is ``reports``, because ``xc.report`` is the function.
"""
