"""What every model of documents has besides the four methods: word frequencies, and axes that one can read."""

import torch
from torch import Tensor, nn

from varitext.latent import DiagonalGaussian


class DocumentNetwork(nn.Module):
    """The base of document models. A model adds `encode`, `prior`, `posterior`, `log_likelihood`, `word_directions`,
    a `recipe`, and, for alternating updates, `inference_parameters`."""

    def __init__(self, vocabulary_size: int, latent_dim: int):
        super().__init__()
        self.latent_dim = latent_dim
        self.register_buffer("word_log_frequencies", torch.zeros(vocabulary_size))  # [V]   the unigram model
        self.register_buffer("axes", torch.eye(latent_dim))  # [K, K]   how users see h: see latent/rotation.py

    def learn_frequencies(self, word_counts: Tensor) -> None:
        """The unigram model of the training documents, add-one; called once, before training."""
        smoothed = word_counts.to(torch.float64) + 1
        self.word_log_frequencies.copy_((smoothed / smoothed.sum()).log())
        self.start_from_frequencies()

    def start_from_frequencies(self) -> None:
        """A place for a model to start its bias at the unigram model; by default it starts where it stands."""

    def word_directions(self) -> Tensor:
        """One vector per word in the space of h, [V, K]: what moving h that way does to the word."""
        raise NotImplementedError

    @property
    def word_vectors(self) -> Tensor:
        """The same on the readable axes."""
        return self.word_directions().detach() @ self.axes  # [V, K]

    def on_axes(self, gaussian: DiagonalGaussian) -> DiagonalGaussian:
        """Mean and spread of h along the readable axes."""
        variance = gaussian.std.square() @ self.axes.square()
        return DiagonalGaussian(gaussian.mean @ self.axes, 0.5 * variance.log())
