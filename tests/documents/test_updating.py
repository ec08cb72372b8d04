"""Going on from a model: what new words start with, what the pull costs, that topics stay, and that nothing is lost."""

import copy
import json
import re
import signal

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from synthetic import topic_documents

from varitext.cli import main
from varitext.corpora import load_documents
from varitext.corpora.prepare import prepare
from varitext.documents.model import DocumentModel
from varitext.documents.updating import Anchor, grown, place_new_words
from varitext.errors import InputError
from varitext.evaluation.latent_dimensions import LatentSpace, alignment_record
from varitext.models.documents import DOCUMENT_MODELS, model_class
from varitext.models.documents.base import procrustes
from varitext.text import VocabularyRules

SMALL = {"latent_dim": 3, "epochs": 12, "threads": 1, "n_topics": 3}
COUNTS = topic_documents(200, 40, 4, 30)
MORE = topic_documents(150, 40, 4, 30, seed=1)
GRADIENTS = [name for name in DOCUMENT_MODELS if name != "lda"]


@pytest.fixture(scope="module")
def fitted():
    return DocumentModel(**SMALL).fit(COUNTS)


def a_copy(model):
    return copy.deepcopy(model)


def texts(documents, seed, extra=()):
    """Every document is about space or about sport."""
    generator = np.random.default_rng(seed)
    kinds = [["moon", "rocket", "orbit", "launch"], ["goal", "match", "team", "player"]]
    kinds[0] += list(extra)
    return [" ".join(generator.choice(kinds[generator.integers(2)], 15)) for _ in range(documents)]


# Alignment


@given(st.integers(0, 1000))
def test_axes_find_their_way_back(seed):
    generator = np.random.default_rng(seed)
    seen = generator.normal(size=(20, 3))
    rotation = np.linalg.qr(generator.normal(size=(3, 3)))[0]
    axes = procrustes(seen @ rotation.T, seen, generator.random(20) + 0.1)
    np.testing.assert_allclose(axes, rotation, atol=1e-8)


# The pull


def test_the_pull_is_the_mean_kl_to_second_order():
    """Of p(w | h) before and after a small change of R, over h ~ N(0, I)."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = model_class("nvdm")(vocabulary_size=12, latent_dim=2)
        network.learn_frequencies(torch.randint(1, 50, (12,)))
        network.decoder.weight.data.zero_()  # where softmax(b) is the distribution for every h
        anchor = Anchor(network, strength=3.0)
        moved = copy.deepcopy(network)
        moved.decoder.weight.data = 0.02 * torch.randn(12, 2)
        h = torch.randn(200_000, 2)
    with torch.no_grad():
        old, new = (torch.log_softmax(one.decoder(h).double(), 1) for one in (network, moved))
        kl = (old.exp() * (old - new)).sum(1).mean()
        assert anchor.cost(network) == 0
        assert float(anchor.cost(moved)) == pytest.approx(3 * float(kl), rel=0.02)
        moved.decoder.weight += 5.0  # the same for every word: softmax does not see it
        assert float(anchor.cost(moved)) == pytest.approx(3 * float(kl), rel=0.02)


# New words


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_grown_network_says_the_same_about_the_words_it_had(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = model_class(name)(vocabulary_size=10, latent_dim=3)
    network.learn_frequencies(torch.arange(1.0, 11.0))
    with torch.no_grad():
        for parameter in network.parameters():  # as if it had been trained
            parameter += 0.1
    frequencies = torch.cat([network.word_log_frequencies, torch.tensor([-4.0, -3.0])]).log_softmax(0)
    larger = grown(network, {"latent_dim": 3}, frequencies, seed=0)
    assert torch.equal(larger.word_log_frequencies, frequencies)
    wide = larger.state_dict()
    for name, tensor in network.state_dict().items():
        if name != "word_log_frequencies":
            assert torch.equal(wide[name][tuple(map(slice, tensor.shape))], tensor), name
    if (decoder := larger.linear_decoder()) is not None:  # as frequent beside the others as it should be
        bias = decoder.bias.detach()
        assert torch.allclose(bias[10:] - bias[:10].logsumexp(0), frequencies[10:] - frequencies[:10].logsumexp(0))


def test_a_new_word_starts_where_its_documents_lie(fitted):
    topic = np.asarray(COUNTS[:, :10].sum(1)).ravel() > 12  # documents of the first topic
    news = scipy.sparse.csr_matrix(np.stack([2.0 * topic, np.ones(200)], 1).astype(np.float32))
    counts = scipy.sparse.hstack([COUNTS, news]).tocsr()
    total = np.asarray(counts.sum(0)).ravel() + 1
    network = grown(
        fitted.fitted_.network, fitted.fitted_.architecture, torch.from_numpy(np.log(total / total.sum())).float(), 0
    )
    place_new_words(network, fitted.fitted_.network, counts)
    directions = network.linear_decoder().weight.detach()
    expected = directions[:10].mean(0) - directions[10:40].mean(0)
    own, everywhere = directions[40] - directions[:40].mean(0), directions[41] - directions[:40].mean(0)
    assert torch.cosine_similarity(own, expected, 0) > 0.9
    assert everywhere.norm() < 0.3 * own.norm()


def test_a_network_without_a_place_for_each_word_cannot_grow():
    class WithOneWordLess(model_class("nvdm")):
        def __init__(self, vocabulary_size, latent_dim):
            super().__init__(vocabulary_size, latent_dim)
            self.others = torch.nn.Parameter(torch.zeros(vocabulary_size - 1))

    with pytest.raises(InputError, match="cannot learn new words"):
        grown(WithOneWordLess(10, 3), {"latent_dim": 3}, torch.zeros(12), 0)


# The whole


@pytest.mark.parametrize("name", GRADIENTS)
def test_every_model_goes_on_and_keeps_its_topics(name, tmp_path):
    model = DocumentModel(name, 3, epochs=4, threads=1, n_topics=3).fit(COUNTS)
    before = a_copy(model)
    model.partial_fit(MORE)
    update = model.fitted_.updates[-1]
    assert update["alignment"]["in_place"] > 0.9 and update["perplexity_after"] <= update["perplexity_before"]
    assert model.fitted_.n_training_documents == before.fitted_.n_training_documents + update["documents"]
    model.save(tmp_path / "model")
    loaded = DocumentModel.load(tmp_path / "model")
    assert loaded.fitted_.updates == json.loads(json.dumps(model.fitted_.updates))
    assert np.array_equal(loaded.transform(COUNTS[:5]), model.transform(COUNTS[:5]))


def test_topics_stay_better_than_in_another_fit(fitted):
    model, other = a_copy(fitted).partial_fit(MORE), DocumentModel(**SMALL | {"seed": 5}).fit(MORE)
    spaces = [
        LatentSpace(one.word_vectors_, np.full(40, 1 / 40), one.fitted_.vocabulary.words, one.fitted_.kl_per_dimension)
        for one in (fitted, model, other)
    ]
    kept, fresh = (alignment_record(spaces[0], space) for space in spaces[1:])
    assert kept.in_place > 0.98 and kept.moved == 0
    assert kept.in_place > fresh.in_place
    assert model.fitted_.updates[-1]["same_vectors"] > 0.95


def test_new_words_come_after_the_old_ones_and_are_learned():
    rules = VocabularyRules(maximum_document_share=1.0)
    model = DocumentModel(latent_dim=2, epochs=30, threads=1, vocabulary_rules=rules).fit(texts(150, 0))
    before = model.fitted_.vocabulary.words
    known = a_copy(model).partial_fit(texts(150, 1, extra=["satellite"]))
    assert known.fitted_.vocabulary.words == before and known.fitted_.updates[-1]["new_words"] == 0
    model.partial_fit(texts(150, 1, extra=["satellite"]), new_words=True)
    assert model.fitted_.vocabulary.words == (*before, "satellite")
    nearest = [word for word, _ in model.similar_words("satellite", 4)]
    assert set(nearest) == {"moon", "rocket", "orbit", "launch"}
    assert model.fitted_.updates[-1]["alignment"]["in_place"] > 0.95
    model.partial_fit(texts(50, 2, extra=["satellite"]), new_words=True)
    assert len(model.fitted_.updates) == 2 and model.fitted_.updates[-1]["new_words"] == 0


def test_counts_without_words_have_no_new_ones(fitted):
    with pytest.raises(InputError, match="counts without column names"):
        a_copy(fitted).partial_fit(MORE, new_words=True)


def test_shards_are_read_like_counts_in_memory(tmp_path):
    rows = [{"text": text} for text in texts(120, 3, extra=["satellite"])]
    (tmp_path / "more.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prepare(
        [tmp_path / "more.jsonl"], tmp_path / "shards", vocabulary_rules=VocabularyRules(maximum_document_share=1.0)
    )
    rules = VocabularyRules(maximum_document_share=1.0)
    model = DocumentModel(latent_dim=2, epochs=5, threads=1, vocabulary_rules=rules).fit(texts(100, 4))
    sharded, held = a_copy(model), a_copy(model)
    sharded.partial_fit(load_documents(str(tmp_path / "shards")), new_words=True)
    held.partial_fit(load_documents(str(tmp_path / "more.jsonl")), new_words=True)
    assert sharded.fitted_.vocabulary.words[-1] == "satellite"
    order = [sharded.fitted_.vocabulary.index[word] for word in held.fitted_.vocabulary.words]
    np.testing.assert_allclose(sharded.word_vectors_[order], held.word_vectors_, atol=1e-4)


def test_what_cannot_go_on_is_said(fitted):
    with pytest.raises(InputError, match="an update needs at least 2"):
        a_copy(fitted).partial_fit(MORE[:1])
    model = a_copy(fitted)
    with pytest.raises(InputError):
        model.partial_fit(MORE, learning_rate=float("inf"))
    assert model.fitted_.updates == [] and np.array_equal(model.word_vectors_, fitted.word_vectors_)


def test_an_update_leaves_what_it_starts_from_as_it_is(fitted):
    weights = {name: tensor.clone() for name, tensor in fitted.fitted_.network.state_dict().items()}
    updated = copy.copy(fitted).partial_fit(MORE)
    assert (
        updated.fitted_.network is not fitted.fitted_.network
        and fitted.fitted_.updates == []
        and len(updated.fitted_.updates) == 1
    )
    assert all(torch.equal(tensor, weights[name]) for name, tensor in fitted.fitted_.network.state_dict().items())


def test_an_anchor_of_zero_lets_topics_move_farther(fitted):
    held, free = (copy.copy(fitted).partial_fit(MORE, anchor=anchor).fitted_.updates[-1] for anchor in (1.0, 0.0))
    assert free["alignment"]["in_place"] < held["alignment"]["in_place"]


class Stopper:
    """Presses Ctrl-C after some steps."""

    def __init__(self, steps):
        self.steps = steps

    def step(self, *_):
        self.steps -= 1
        if self.steps == 0:
            signal.raise_signal(signal.SIGINT)

    def round(self, record): ...

    def note(self, message): ...


def test_an_interrupted_update_goes_on_to_the_same_bits(fitted, tmp_path):
    whole = a_copy(fitted).partial_fit(MORE)
    stopped = a_copy(fitted)
    with pytest.raises(KeyboardInterrupt):
        stopped.partial_fit(MORE, checkpoint=tmp_path / "checkpoint", progress=Stopper(11))
    assert stopped.fitted_.stopped == "interrupted" and np.isfinite(stopped.perplexity(MORE))
    resumed = a_copy(fitted).partial_fit(MORE, checkpoint=tmp_path / "checkpoint", resume=True)
    assert np.array_equal(resumed.word_vectors_, whole.word_vectors_)
    other = a_copy(fitted)
    other.fitted_.network.linear_decoder().weight += 1e-3
    with pytest.raises(InputError, match="other data"):  # it belongs to the model that it went on from
        other.partial_fit(MORE, checkpoint=tmp_path / "checkpoint", resume=True)


def test_the_command_says_how_topics_are_aligned(fitted, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fitted.save("old")
    scipy.sparse.save_npz("more.npz", MORE)

    def run(words):
        monkeypatch.setattr("sys.argv", ["varitext", *words.split()])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, capsys.readouterr().err

    code, said = run("fit --continue old more.npz --out new --threads 1")
    assert code == 0 and re.search(r"alignment of topics 0\.9\d+|alignment of topics 1\.000", said)
    assert DocumentModel.load("old").fitted_.updates == [] and len(DocumentModel.load("new").fitted_.updates) == 1
    assert run("fit --continue new more.npz --threads 1")[0] == 0
    assert len(DocumentModel.load("new").fitted_.updates) == 2
    for words, complaint in (
        ("fit --continue new more.npz --latent-dim 3", "--latent-dim does not apply"),
        ("fit --continue new more.npz --model nvdm", "--model does not apply"),
        ("fit --continue missing more.npz", "missing is not a folder"),
        ("fit more.npz --new-words --out x", "it belongs to --continue"),
        ("fit more.npz", "--out"),
    ):
        code, said = run(words)
        assert code == 2 and complaint in said and len(said.strip().splitlines()) == 1
