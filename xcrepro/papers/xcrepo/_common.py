"""What the items of this paper share: long text that a notebook folds."""

from __future__ import annotations

import html


class Folded:
    """Text of which a notebook shows one line, and the rest on a click.

    Parameters
    ----------
    summary : str
        The line.
    text : str
        The rest; its lines stay as they are.
    """

    def __init__(self, summary: str, text: str) -> None:
        self.summary, self.text = summary, text

    def __repr__(self) -> str:
        return f"{self.summary}\n\n{self.text}"

    def _repr_html_(self) -> str:
        summary, text = html.escape(self.summary), html.escape(self.text)
        return f"<details>\n<summary>{summary}</summary>\n<pre>{text}</pre>\n</details>"
