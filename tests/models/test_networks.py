"""Networks whose training is killed: they go on to the same bits, and leave nothing half-written."""

import numpy as np
import pytest

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.models import ClusterNetwork, GraphTowers, LabelAttention, NeuralOneVsAll, NotFitted, TwoTowers, progress
from xcrepro.models.networks import base as networks

KINDS = {
    "neural": NeuralOneVsAll(dim=6, epochs=4),
    "attention": LabelAttention(dim=6, epochs=4, steps=20),
    "two towers": TwoTowers(dim=6, epochs=4, batch=64, shortlist=8),
    "graph": GraphTowers(dim=6, epochs=4, batch=64, shortlist=8),
    "k-means": ClusterNetwork(dim=6, epochs=4, max_leaf=8, levels=2),
    "learned": ClusterNetwork("learned", dim=6, epochs=4, max_leaf=8, beam=5),
    "none": ClusterNetwork("none", dim=6, epochs=4, soft=0.5),
}


@pytest.fixture(scope="module")
def data():
    return xc.twin("lf-amazontitles-131k", scale=0.0005, seed=0)


@pytest.fixture(autouse=True)
def kept_after_every_epoch(monkeypatch):
    monkeypatch.setattr(networks, "KEEP", 0.0)


def given(model, data):
    words = [data.label_features] if isinstance(model, networks.ReadsWords) else []
    return (data.train.X, data.train.Y, *words)


def bits(model):
    return {name: array.tobytes() for name, array in model._state().items()}


def killed_in(monkeypatch, epoch):
    """Trainings end in the second step of this epoch; gives the list of the epochs that were begun."""
    batches, begun = networks.Steps.batches, []

    def dying(self):
        begun.append(self._epoch)
        for number, step in enumerate(batches(self)):
            if self._epoch == epoch and number == 1:
                raise KeyboardInterrupt
            yield step

    monkeypatch.setattr(networks.Steps, "batches", dying)
    return begun


@pytest.mark.parametrize("epoch", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_training_goes_on_to_the_same_bits(data, kind, epoch, tmp_path, monkeypatch):
    model = type(KINDS[kind])(**KINDS[kind].get_params())
    want = bits(KINDS[kind].fit(*given(model, data)))
    folder = tmp_path / "new" / "folder"
    with monkeypatch.context() as patch:
        killed_in(patch, epoch)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*given(model, data), checkpoint=folder)
    with pytest.raises(NotFitted):
        model.predict(data.test.X)
    assert [path.name for path in folder.iterdir()] == ["network.npz"]
    begun = killed_in(monkeypatch, None)
    assert bits(model.fit(*given(model, data), checkpoint=str(folder))) == want
    assert begun == list(range(epoch, 4))


def test_a_killed_training_leaves_the_fitted_model_as_it_was(data, monkeypatch):
    model = ClusterNetwork("learned", dim=6, epochs=4, max_leaf=8).fit(*given(KINDS["learned"], data))
    before = bits(model)
    killed_in(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(batch=16).fit(data.train.X[:50], data.train.Y[:50])
    assert bits(model) == before


def test_the_state_of_another_training_is_refused_and_a_damaged_one_named(data, tmp_path, monkeypatch):
    model, (X, Y, words) = TwoTowers(dim=6, epochs=3), given(KINDS["graph"], data)
    with monkeypatch.context() as patch:
        killed_in(patch, 1)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, words, checkpoint=tmp_path)
    for other, args in (
        (TwoTowers(dim=6, epochs=4), (X, Y, words)),
        (model, (X, Y)),
        (model, (X * 2 + X.multiply(X), Y, words)),
        (model, (X[:-1], Y[:-1], words)),
        (GraphTowers(dim=6, epochs=3), (X, Y, words)),
    ):
        with refused("checkpoint", match="network.npz"):
            other.fit(*args, checkpoint=tmp_path)
    path = tmp_path / "network.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with damaged("network.npz"):
        model.fit(X, Y, words, checkpoint=tmp_path)


def test_a_state_that_cannot_be_written_is_said_to_be_none(data, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    model = NeuralOneVsAll(dim=4, epochs=2).fit(data.train.X, data.train.Y, checkpoint=tmp_path / "file")
    assert "not kept" in capsys.readouterr().err
    assert model.predict(data.test.X[:2]).ids.shape == (2, 5)


def test_it_is_kept_no_more_often_than_said_and_not_at_the_end(data, tmp_path, monkeypatch):
    monkeypatch.setattr(networks, "KEEP", 3600.0)
    NeuralOneVsAll(dim=4, epochs=2).fit(data.train.X, data.train.Y, checkpoint=tmp_path)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(networks, "KEEP", 0.0)
    NeuralOneVsAll(dim=4, epochs=1).fit(data.train.X, data.train.Y, checkpoint=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_takes_minutes_says_so_before_it_starts(data, capsys, monkeypatch):
    monkeypatch.setattr(progress, "FIRST", 1e-9)
    with monkeypatch.context() as patch:
        killed_in(patch, 0)
        with pytest.raises(KeyboardInterrupt):
            NeuralOneVsAll(dim=64, epochs=400).fit(data.train.X, data.train.Y)
    assert "this takes" in capsys.readouterr().err


def test_the_rate_falls_to_nearly_nothing_and_every_row_comes_once_an_epoch():
    steps = networks.Steps(NeuralOneVsAll(batch=3, epochs=2, learning_rate=0.5), 7, (), {})
    rates = []
    for _ in steps.epochs():
        rows = [(part, rates.append(rate))[0] for part, rate in steps.batches()]
        assert sorted(np.concatenate(rows)) == list(range(7))
        assert [part.size for part in rows] == [3, 3, 1]
    np.testing.assert_allclose(rates, 0.5 * (1 - np.arange(6) / 6))


def put(arrays: str, **changes):
    """Exchanges some of a model's arrays."""
    return lambda model: getattr(model, arrays).update(changes)


def put_own(name: str, change):
    return lambda model: setattr(model, name, change(getattr(model, name)))


SMALL = {"dim": 2, "epochs": 1}


@pytest.mark.parametrize(
    ("model", "change", "said"),
    [
        (NeuralOneVsAll(**SMALL), lambda model: model.weights_.update(output=model.weights_["output"][:-1]), "output"),
        (TwoTowers(**SMALL), put_own("bias_", lambda bias: bias[:2]), "bias"),
        (LabelAttention(**SMALL), put_own("output_", lambda output: output[:-1]), "output"),
        (LabelAttention(**SMALL), put_own("labels_", lambda labels: labels + 5), "labels"),
        (LabelAttention(**SMALL), put_own("features_", lambda features: features - 1), "features"),
        (ClusterNetwork(max_leaf=2, **SMALL), put("net_", parent1=np.array([0, 0, 0, 0, 9])), "parent1"),
        (ClusterNetwork(max_leaf=2, **SMALL), put("net_", labels=np.array([0, 1, 2, 2, 4])), "labels"),
        (ClusterNetwork(max_leaf=2, **SMALL), put("net_", bias0=np.zeros(2)), "output0"),
        (
            ClusterNetwork("learned", max_leaf=2, dim=2, epochs=2),
            put("net_", share_label=np.array([0, 1, 2, 3, 9])),
            "share",
        ),
        (ClusterNetwork("learned", max_leaf=2, dim=2, epochs=2), put("net_", share_start=np.array([0, 5])), "share"),
        (GraphTowers(**SMALL), lambda model: model.around_.indices.__setitem__(0, 99), "indices"),
    ],
)
def test_a_file_with_impossible_arrays_is_refused(model, change, said, tmp_path):
    model.fit(np.eye(5), np.eye(5, dtype=int))
    change(model)
    model.save(tmp_path / "m")
    with damaged("m", match=said):
        xc.models.load(tmp_path / "m")
