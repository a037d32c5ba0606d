"""Files that say what is above each label."""

import numpy as np
import pytest

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.__main__ import main
from xcrepro.core.data.names import LabelNames
from xcrepro.core.errors import DataMissing
from xcrepro.tools.formats import read_hierarchy

NAMES = ["dog", "poodle", "cat"]
TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <http://example.org/> .
:1 skos:prefLabel "dog"@en, "Hund"@de ; skos:notation "D" ; skos:broader :9 .
:2 skos:prefLabel "poodle"@en, "dog"@de ; skos:notation "P" ; skos:broader :1 .
:9 skos:prefLabel "animal"@en ; skos:narrower :3 .
:3 skos:prefLabel "cat"@en ; skos:notation "C" .
"""
RDF_XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
 <skos:Concept rdf:about="http://example.org/1"><skos:prefLabel>dog</skos:prefLabel>
  <skos:broader rdf:resource="http://example.org/9"/></skos:Concept>
 <skos:Concept rdf:about="http://example.org/2"><skos:prefLabel>poodle</skos:prefLabel>
  <skos:broader rdf:resource="http://example.org/1"/></skos:Concept>
 <skos:Concept rdf:about="http://example.org/3"><skos:prefLabel>cat</skos:prefLabel>
  <skos:broader rdf:resource="http://example.org/9"/></skos:Concept>
</rdf:RDF>
"""
BROADER = "<http://example.org/{}> <http://www.w3.org/2004/02/skos/core#broader> <http://example.org/{}> .\n"
OBO = """format-version: 1.2

[Term]
id: A:1
name: dog
is_a: A:9 ! animal

[Term]
id: A:2
name: poodle
is_a: A:1 {source="x"} ! dog

[Term]
id: A:3
name: cat
is_a: A:9

[Typedef]
id: part_of
is_a: A:1
"""
FILES = {
    "turtle": TURTLE,
    "RDF/XML": RDF_XML,
    "N-Triples": BROADER.format(1, 9) + BROADER.format(2, 1) + BROADER.format(3, 9),
    "OBO": OBO,
    "tabs": "dog\tanimal\npoodle\tdog\ncat\tanimal\n",
    "a header": "parent;child\nanimal;dog\ndog;poodle\nanimal;cat\n",
    "a taxonomy": "animal\tdog\tcat\ndog\tpoodle\n",
    "a root first": "root,dog,cat\ndog,poodle\n",
}


def sets(found):
    return [{*row.nonzero()[0].tolist()} for row in found.above.toarray()]


@pytest.mark.parametrize("kind", FILES)
def test_every_form_says_the_same(kind, tmp_path):
    if kind in ("turtle", "RDF/XML", "N-Triples"):
        pytest.importorskip("rdflib")
    (tmp_path / "above").write_text(FILES[kind])
    names = LabelNames(tuple(NAMES), tuple(f"http://example.org/{n}" for n in (1, 2, 3)) if kind == "N-Triples" else ())
    found = read_hierarchy(tmp_path / "above", names)
    assert sets(found) == [{0}, {0, 1}, {2}]
    assert found.root  # the animal, which is no label
    assert sets(read_hierarchy(tmp_path / "above", names, levels=1)) == sets(found)


def test_concepts_are_called_as_most_labels_are(tmp_path):
    """In German the poodle is called a dog; the languages are not mixed."""
    pytest.importorskip("rdflib")
    (tmp_path / "v.ttl").write_text(TURTLE)
    assert sets(read_hierarchy(tmp_path / "v.ttl", ["D", "P", "C"])) == [{0}, {0, 1}, {2}]
    assert sets(read_hierarchy(tmp_path / "v.ttl", ["Hund", "dog"])) == [{0}, {0, 1}]


def test_names_that_hold_their_levels():
    assert sets(read_hierarchy(" -- ", ["England -- Fiction", "England"])) == [{0, 1}, {1}]
    with pytest.raises(DataMissing):
        read_hierarchy("no/file.ttl", NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "animal\tdog\nanimal\tcat\ndog\tpoodle\n",  # parents first, and nothing that says so
        "\tanimal\ndog\tanimal\n",
        "wolf\tanimal\n",
        "dog\tcat\ncat\tdog\n",
        "<?xml version='1.0'?><rdf:RDF",
        "[Term]\nid: A:1\nname: dog\n",
    ],
)
def test_what_is_no_hierarchy_of_these_labels(text, tmp_path):
    if text.startswith("<"):
        pytest.importorskip("rdflib")
    (tmp_path / "above.txt").write_text(text)
    with damaged("above.txt"):
        read_hierarchy(tmp_path / "above.txt", NAMES)


def test_the_command_line(tmp_path, capsys):
    """An answer one level away, one on another branch, one that is right: Kiritchenko's value by hand is 4 of 6."""
    truth, said, above = (tmp_path / name for name in ("truth.jsonl", "said.jsonl", "above.tsv"))
    truth.write_text('{"id": 0, "labels": ["dog"]}\n{"id": 1, "labels": ["poodle"]}\n{"id": 2, "labels": ["car"]}\n')
    said.write_text('{"id": 0, "labels": ["poodle"]}\n{"id": 1, "labels": ["cat"]}\n{"id": 2, "labels": ["car"]}\n')
    above.write_text("poodle\tdog\ndog\tanimal\ncat\tanimal\nanimal\t\ncar\t\n")
    words = ["evaluate", str(truth), str(said), "-k", "1", "--csv", "--hierarchy", str(above)]
    assert main([*words, "--metrics", "micro-hF1", "P"]) == 0
    values = [float(line.split(",")[2]) for line in capsys.readouterr().out.splitlines()[1:]]
    assert values == pytest.approx([4 / 6, 1 / 3])
    assert main(words) == 0
    assert "micro-hR" in capsys.readouterr().out
    assert main([*words, "--levels", "0"]) == 2
    assert main([*words[:-2], "--levels", "1"]) == 2
    with refused("levels"):
        read_hierarchy(above, NAMES, levels=0)


def test_oaxmlc_s_three_files_by_their_description(tmp_path, capsys):
    """Two documents, of whose two sets of labels the ontology says which is meant; the first parent is the root."""
    (tmp_path / "documents.json").write_text(
        '{"id": "W1", "title": "a", "topics_labels": ["T10"], "concepts_labels": ["C2", "C3"]}\n'
        '{"id": "W2", "title": "c", "topics_labels": ["T11"], "concepts_labels": ["C3"]}\n'
    )
    lines = (f'{{"label": "C{n}", "title": "{name}", "level": {n}}}\n' for n, name in enumerate(("all", "x", "y"), 1))
    (tmp_path / "ontology.json").write_text("".join(lines))
    (tmp_path / "taxonomy.txt").write_text("C0 C1\nC1 C2 C3\n")
    (tmp_path / "said.jsonl").write_text('{"id": "W1", "labels": ["C3"]}\n{"id": "W2", "labels": ["C2"]}\n')
    files = [str(tmp_path / name) for name in ("documents.json", "said.jsonl")]
    more = ["--labels", str(tmp_path / "ontology.json"), "--hierarchy", str(tmp_path / "taxonomy.txt")]
    assert main(["evaluate", *files, *more, "-k", "1", "--metrics", "P", "micro-hF1", "--csv"]) == 0
    assert capsys.readouterr().out.split() == ["metric,k,value", "P,1,0.5", "micro-hF1,1,0.6666666666666666"]
    assert main(["evaluate", *files, "-k", "1"]) == 2
    (tmp_path / "taxonomy.txt").write_text("England Wales\nSocial life\n")
    with damaged("taxonomy.txt"):
        read_hierarchy(tmp_path / "taxonomy.txt", ["Wales"])


def test_a_report_has_them_and_compares_in_them(tmp_path):
    rng = np.random.default_rng(0)
    Y = rng.random((40, 12)) < 0.2
    tops = {name: xc.TopK.from_scores(rng.random(Y.shape) + weight * Y, 3) for name, weight in (("a", 1), ("b", 0.2))}
    (tmp_path / "above.tsv").write_text("".join(f"{label}\tgroup {label // 3}\n" for label in range(12)))
    about = {"ks": (1, 3), "price": False, "n_resamples": 20, "hierarchy": tmp_path / "above.tsv"}
    made = xc.report(Y, tops, metrics=["micro-hF1@3", "P@1"], **about)
    hierarchy = read_hierarchy(tmp_path / "above.tsv", [*map(str, range(12))])
    wanted = xc.metrics.hierarchical(Y, tops["a"], 3, hierarchy=hierarchy)[0]
    found = made.frame().set_index(["model", "metric", "k"])["value"]
    assert found["a", "micro-hF1", 3] == pytest.approx(wanted, rel=1e-5)
    assert {"micro-hP", "micro-hR", "hF"} <= {*made.frame()["metric"]}
    assert "micro-hF1@3" in made.sentences("ranking")[0]
