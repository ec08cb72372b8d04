"""The transformer encoder of BERT (Vaswani et al. 2017, Devlin et al. 2019): it maps each word piece to a state.

    x = norm(word + place + segment)
    every layer:  x = norm(x + attend(x));  x = norm(x + W2 gelu(W1 x))

`load_bert` reads the weights under their names in BERT's files.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

EPSILON = 1e-12  # of the norms


class Embeddings(nn.Module):
    def __init__(self, vocabulary_size: int, hidden_dim: int, longest: int):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary_size, hidden_dim)
        self.position_embeddings = nn.Embedding(longest, hidden_dim)
        self.token_type_embeddings = nn.Embedding(2, hidden_dim)
        self.LayerNorm = nn.LayerNorm(hidden_dim, EPSILON)

    def forward(self, tokens: Tensor, segments: Tensor | None) -> Tensor:
        place = self.position_embeddings.weight[: tokens.shape[1]]  # [T, H]
        kind = self.token_type_embeddings.weight[0] if segments is None else self.token_type_embeddings(segments)
        found: Tensor = self.LayerNorm(self.word_embeddings(tokens) + place + kind)
        return found  # [B, T, H]


class Layer(nn.Module):
    def __init__(self, hidden_dim: int, heads: int, inner_dim: int):
        super().__init__()
        self.heads = heads
        self.read = nn.Linear(hidden_dim, 3 * hidden_dim)  # queries, keys and values in one product
        self.attended = nn.Linear(hidden_dim, hidden_dim)
        self.attended_norm = nn.LayerNorm(hidden_dim, EPSILON)
        self.inner = nn.Linear(hidden_dim, inner_dim)
        self.outer = nn.Linear(inner_dim, hidden_dim)
        self.outer_norm = nn.LayerNorm(hidden_dim, EPSILON)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, width = states.shape
        read = self.read(states).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = read.permute(2, 0, 3, 1, 4)  # each [B, heads, T, H / heads]
        attended = scaled_dot_product_attention(query, key, value, mask)
        attended = attended.transpose(1, 2).reshape(batch, length, width)
        states = self.attended_norm(states + self.attended(attended))
        found: Tensor = self.outer_norm(states + self.outer(gelu(self.inner(states))))
        return found  # [B, T, H]


class Encoder(nn.Module):
    def __init__(
        self, vocabulary_size: int, hidden_dim: int, layers: int, heads: int, inner_dim: int, longest: int = 512
    ):
        super().__init__()
        self.width = hidden_dim
        self.embeddings = Embeddings(vocabulary_size, hidden_dim, longest)
        self.layers = nn.ModuleList(Layer(hidden_dim, heads, inner_dim) for _ in range(layers))

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """States of tokens, [B, T, H]; `mask` [B, T] is true on real tokens (default: all are)."""
        seen = None if mask is None else mask[:, None, None]  # [B, 1, 1, T]   padding is not attended to
        states: Tensor = self.embeddings(tokens, segments)
        for layer in self.layers:
            states = layer(states, seen)
        return states

    @torch.no_grad()
    def load_bert(self, weights: dict[str, Tensor]) -> None:
        """Load the weights of a BERT file, under their names there."""
        own = {name: value for name, value in weights.items() if name.startswith("embeddings.")}
        own.pop("embeddings.position_ids", None)
        for number in range(len(self.layers)):
            there = f"encoder.layer.{number}."
            for kind in ("weight", "bias"):
                parts = [weights[f"{there}attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
                own[f"layers.{number}.read.{kind}"] = torch.cat(parts)
                for name, given in _NAMES.items():
                    own[f"layers.{number}.{name}.{kind}"] = weights[f"{there}{given}.{kind}"]
        self.load_state_dict(own)


_NAMES = {
    "attended": "attention.output.dense",
    "attended_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "outer_norm": "output.LayerNorm",
}
