"""From a truth and the predictions of one or several models to one report: ``xc.report`` and ``xcrepro report``.

The report is the notebook ``kit/your_predictions``. :mod:`~xcrepro.reports.given` reads what is handed in,
:mod:`~xcrepro.reports.compute` makes the numbers, :mod:`~xcrepro.reports.sentences` says what they come to,
:mod:`~xcrepro.reports.figures` draws them, and :mod:`~xcrepro.reports.page` shows and writes them, section by section.
:mod:`~xcrepro.reports.report` runs the notebook and makes the page.

The package is ``reports``, because ``xc.report`` is the function.
"""
