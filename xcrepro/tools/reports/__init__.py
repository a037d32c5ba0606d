"""``xc.report`` and ``xcrepro report``: one page from truth and predictions, made in process.

:mod:`~.given` reads what is handed in, :mod:`~.asked` checks what is asked, :mod:`~.compute` makes the numbers, which
:mod:`~.measured` keeps; :mod:`~.first` is the first screen and :mod:`~.parts` what comes below, said by :mod:`~.sentences`,
drawn by :mod:`~.figures`, laid out by :mod:`~.grid` and :mod:`~.html`; :mod:`~.report` puts it together and writes it."""
