"""Notebooks and pages have none of the phrases that readers stumbled over."""

from __future__ import annotations

import json

import pytest

from tests import prose

MAY = {
    # the words themselves are what is spoken of
}


@pytest.mark.parametrize("path", prose.pages(), ids=lambda path: path.relative_to(prose.ROOT).as_posix())
def test_a_page_has_no_refused_phrase(path):
    name = path.relative_to(prose.ROOT).as_posix()
    assert [
        one for one in prose.phrases(prose.prose(path)) if not any(words in one for words in MAY.get(name, ()))
    ] == []


def test_planted_phrases_are_found_and_code_is_not_read(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# It stands in a title\n\nTwo labels a\npoint; `labels a point` in code.\n\n```\nto doubt\n```\n\n| to doubt |\n"
    )
    assert prose.phrases(prose.prose(page)) == ["Two labels a point; x in code."]
    notebook = tmp_path / "one.ipynb"
    cells = [
        {"cell_type": "markdown", "source": ["So it holds [the other way\n", "round](x.md).\n"]},
        {"cell_type": "code", "source": ["# the other way round\n"]},
    ]
    notebook.write_text(json.dumps({"cells": cells}))
    (found,) = prose.phrases(prose.prose(notebook))
    assert "the other way round" in found


def test_habits_are_counted():
    found = prose.habits("It rains because it must; we stay. We read.")
    assert found == {"words": 9, "per sentence": 4.5, "because": 111.1, "semicolons": 111.1, "phrases": 0}
