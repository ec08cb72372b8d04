"""The information in each dimension of the document vectors, in nats: one definition for each kind of vector.

All are zero for a dimension that is the same in every document, and never below.

    gaussian_kl_per_unit     mean of KL(q(h_k | X) || N(0, 1))                    per document
    bernoulli_kl_per_unit    mean of KL(q(h_k | X) || mean over documents of q)   per document: the mutual information
                                                                                  of h_k and the document
    proportion_information   mean of theta_k log(theta_k / mean theta_k)          per word: topic k's part in the mutual
                                                                                  information of topic and document
    direction_information    N / 2 Var_d(h_k) Var_w(R_wk)                         per document: the KL between the words
                                                                                  before and after moving h_k as far as
                                                                                  documents do, to second order

The last is for vectors without a posterior. With p(w | h) = softmax(h R + b)_w, a step of d along dimension k changes
the distribution of one word by a KL of d^2 / 2 Var_w(R_wk) + O(d^3), the variance being over the words by frequency.
"""

import torch
from torch import Tensor

from varitext.latent import Bernoullis, DiagonalGaussian, kl

SURE = 1e-6  # probabilities nearer than this to 0 or 1 count as this


def gaussian_kl_per_unit(mean: Tensor, std: Tensor) -> Tensor:
    q = DiagonalGaussian(mean, std.log())
    return kl(q, DiagonalGaussian.standard(mean)).mean(0)  # [K]


def bernoulli_kl_per_unit(probabilities: Tensor) -> Tensor:
    """From q(h_k = 1 | X), [D, K]."""
    within = probabilities.double().clamp(SURE, 1 - SURE)
    return kl(Bernoullis(torch.logit(within)), Bernoullis(torch.logit(within.mean(0)))).mean(0)  # [K]


def proportion_information(shares: Tensor) -> Tensor:
    """From the topic proportions of documents, [D, K], which sum to one."""
    shares = shares.double()
    return (torch.xlogy(shares, shares) - torch.xlogy(shares, shares.mean(0))).mean(0).clamp(min=0)  # [K]


def direction_information(
    means: Tensor, word_directions: Tensor, word_log_frequencies: Tensor, words_per_document: float
) -> Tensor:
    """From vectors [D, K], and what they do to the words, [V, K]."""
    frequencies, directions = word_log_frequencies.double().exp(), word_directions.double()
    among_words = frequencies @ directions.square() - (frequencies @ directions).square()
    among_documents = means.double().var(0, correction=0)
    return 0.5 * words_per_document * among_documents * among_words.clamp(min=0)  # [K]
