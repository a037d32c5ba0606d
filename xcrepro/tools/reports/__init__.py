"""``xc.report`` and ``xcrepro report``: the notebook ``kit/your_predictions``, run on a reader's data by :mod:`~.report`.

:mod:`~.given` reads what is handed in, :mod:`~.compute` makes the numbers, :mod:`~.sentences` says what they come to,
:mod:`~.figures` draws them, and :mod:`~.page` shows and writes them, section by section."""
