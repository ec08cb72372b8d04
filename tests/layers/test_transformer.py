"""The encoder against its formulas in numpy, on random weights of a tiny one; padding changes nothing."""

import numpy as np
import pytest
import torch
from scipy.special import erf, softmax

from varitext.layers.transformer import EPSILON, Encoder

SIZES = {"vocabulary_size": 11, "hidden_dim": 8, "layers": 2, "heads": 2, "inner_dim": 12, "longest": 16}


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    torch.manual_seed(0)
    made = Encoder(**SIZES).double().eval()
    for weights in made.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    return made


def norm(x: np.ndarray, layer: torch.nn.LayerNorm) -> np.ndarray:
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPSILON)
    return scaled * layer.weight.numpy() + layer.bias.numpy()


def linear(x: np.ndarray, layer: torch.nn.Linear) -> np.ndarray:
    return x @ layer.weight.numpy().T + layer.bias.numpy()


def by_formula(encoder: Encoder, tokens: list[int]) -> np.ndarray:
    """One sentence, head by head."""
    parts = encoder.embeddings
    tables = (parts.word_embeddings, parts.position_embeddings, parts.token_type_embeddings)
    word, place, kind = (table.weight.numpy() for table in tables)
    x = norm(word[tokens] + place[: len(tokens)] + kind[0], parts.LayerNorm)
    width = SIZES["hidden_dim"] // SIZES["heads"]
    for layer in encoder.layers:
        query, key, value = np.split(linear(x, layer.read), 3, axis=1)
        heads = []
        for head in range(SIZES["heads"]):
            own = slice(head * width, (head + 1) * width)
            weights = softmax(query[:, own] @ key[:, own].T / np.sqrt(width), axis=1)
            heads.append(weights @ value[:, own])
        x = norm(x + linear(np.concatenate(heads, 1), layer.attended), layer.attended_norm)
        inner = linear(x, layer.inner)
        x = norm(x + linear(inner * (1 + erf(inner / np.sqrt(2))) / 2, layer.outer), layer.outer_norm)
    return x


@torch.no_grad()
def test_states_are_those_of_the_formulas(encoder):
    tokens = [3, 1, 4, 1, 5]
    for weights in encoder.parameters():
        weights.requires_grad_(False)
    np.testing.assert_allclose(encoder(torch.tensor([tokens]))[0], by_formula(encoder, tokens), rtol=1e-9, atol=1e-12)


@torch.no_grad()
def test_padding_and_neighbours_change_nothing(encoder):
    short, long = [2, 7, 1], [9, 2, 6, 5, 3]
    tokens = torch.tensor([[*short, 0, 0], long])
    mask = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    found = encoder(tokens, mask)
    torch.testing.assert_close(found[0, :3], encoder(torch.tensor([short]))[0])
    torch.testing.assert_close(found[1], encoder(torch.tensor([long]))[0])
    other = encoder(torch.tensor([[*short, 8, 10], long]), mask)  # what stands on padding is not looked at
    torch.testing.assert_close(found[0, :3], other[0, :3])


@torch.no_grad()
def test_segments_are_told_apart(encoder):
    tokens = torch.tensor([[2, 7, 1]])
    first = encoder(tokens)
    torch.testing.assert_close(encoder(tokens, segments=torch.zeros_like(tokens)), first)
    assert not torch.allclose(encoder(tokens, segments=torch.tensor([[0, 0, 1]])), first)


def test_weights_are_read_by_the_names_of_bert(encoder):
    hidden, inner = SIZES["hidden_dim"], SIZES["inner_dim"]
    shapes = {
        "attention.self.query": (hidden, hidden),
        "attention.self.key": (hidden, hidden),
        "attention.self.value": (hidden, hidden),
        "attention.output.dense": (hidden, hidden),
        "attention.output.LayerNorm": (hidden,),
        "intermediate.dense": (inner, hidden),
        "output.dense": (hidden, inner),
        "output.LayerNorm": (hidden,),
    }
    weights = {f"embeddings.{name}": value for name, value in encoder.embeddings.state_dict().items()}
    weights["embeddings.position_ids"] = torch.arange(16)
    for number in range(2):
        for name, shape in shapes.items():
            weights[f"encoder.layer.{number}.{name}.weight"] = torch.randn(shape)
            weights[f"encoder.layer.{number}.{name}.bias"] = torch.randn(shape[0])
    other = Encoder(**SIZES)
    other.load_bert(weights)
    torch.testing.assert_close(
        other.layers[1].read.weight[hidden : 2 * hidden], weights["encoder.layer.1.attention.self.key.weight"]
    )
    torch.testing.assert_close(other.layers[0].outer.bias, weights["encoder.layer.0.output.dense.bias"])
