"""NVDM with a DCM likelihood in C: gradients of a batch, which is divided among workers, and q(h | X).

Autograd through `NVDMDCM.objective` gives the same gradients. It takes two hundred short operations, each of which
waits for Python's lock, so a second thread would not help; here each part of a batch is a single call.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.compiled.documents import CompiledModel, Documents, Gradients, Memory, gradients_of_part, infer
from varitext.latent import Bound, FullGaussian, noise
from varitext.latent.gaussian import LOG_STD_RANGE, MEAN_RANGE
from varitext.layers.counts import SampledWords
from varitext.layers.curvature import JITTER
from varitext.layers.dcm import LOG_MASS_RANGE
from varitext.layers.dense import MLP, GaussianHead
from varitext.models.documents.dcm_decoder import LENGTH_RANGE, ROUNDING, DCMDecoder
from varitext.runtime.devices import workers

MAX_STEP = 2.0  # of Newton in each dimension, in standard deviations of the prior
STRETCH_RANGE = (-2.0, 2.0)  # log factor of the network on the standard deviations
LIMITS = (*LOG_MASS_RANGE, LENGTH_RANGE[1], MEAN_RANGE[1], MAX_STEP, STRETCH_RANGE[1], *LOG_STD_RANGE, JITTER)
MIN_PART = 32  # documents; a smaller part does not justify a thread


class CompiledDCM:
    """A network's parameters as the C code reads them, and the memory for their gradients."""

    def __init__(self, encoder: MLP, head: GaussianHead, step_gates: nn.Parameter, decoder: DCMDecoder):
        self.decoder, linear = decoder, decoder.linear
        self.decoder_weights = linear.weight
        of_layers = [each for layer in (*encoder.layers, head.mean, head.log_std) for each in layer.parameters()]
        of_decoder = [linear.weight, decoder.length_weights, linear.bias, decoder.group_log_scales]
        self.parameters = [*of_layers, step_gates, *of_decoder]  # in the order of compiled/model.h
        self.rooms, self.gradients = torch.empty(0, 0), [[torch.empty(0)]]  # per part: all, by parameter
        self.sizes: list[int] = []  # of the gradients
        self.memories: list[Memory] = []  # per part

    def reads(self, decoder: DCMDecoder) -> bool:
        """Whether these are still the parameters of the network: a move to another device may replace them."""
        return decoder.linear.weight is self.decoder_weights

    @torch.no_grad()
    def set_gradients(
        self, batch: CountBatch, weights: Tensor, samples: int, kl_weight: float, chosen: SampledWords | None = None
    ) -> Bound:
        """As `DocumentNetwork.set_gradients`; with `chosen`, as if these were all words."""
        drawn = noise.normal(samples, weights[:, None].expand(-1, self.decoder.linear.in_features))
        model, batch = (self._model(), batch) if chosen is None else (self._model_of(chosen), batch.among(chosen.words))
        found = self._in_parallel(model, batch, drawn, weights, kl_weight)
        whole = self.rooms[: len(found), : sum(self.sizes)]
        for other in whole[1:]:
            whole[0].add_(other)  # in a fixed order, so that the same parts give bit-for-bit the same sum
        for parameter, gradient in zip(self.parameters, self.gradients[0], strict=True):
            if chosen is None or parameter.shape == gradient.shape:
                parameter.grad = gradient
            else:
                parameter.grad = torch.zeros_like(parameter).index_copy_(0, chosen.words, gradient)
        log_likelihood, kl = (torch.cat(each) for each in zip(*(one[:2] for one in found), strict=True))
        return Bound(log_likelihood, kl[:, None])

    def _in_parallel(
        self, model: CompiledModel, batch: CountBatch, drawn: Tensor, weights: Tensor, kl_weight: float
    ) -> list[Gradients]:
        pool, size = workers(), len(batch)
        number = max(1, min(pool.number, size // MIN_PART)) if pool else 1
        self._make_room(number, model.parameters)
        starts, parts = _starts_and_end(batch), []
        for place in range(number):
            rows = slice(size * place // number, size * (place + 1) // number)
            own = drawn[:, rows].contiguous(), weights[rows], kl_weight, self.gradients[place], self.memories[place]
            parts.append(gradients_of_part(model, documents_of(batch, rows, starts), *own))
        others = [pool.submit(part.compute) for part in parts[1:]] if pool else []
        parts[0].compute()  # this thread takes a part, too
        for each in others:
            each.result()
        return parts

    def _make_room(self, number: int, parameters: Sequence[Tensor]) -> None:
        """Room for the gradients of each part, of the parameters' shapes."""
        sizes = [each.numel() for each in parameters]
        if len(self.rooms) >= number and sizes == self.sizes:
            return
        if len(self.rooms) < number or self.rooms.shape[1] < sum(sizes):
            self.rooms = parameters[0].new_empty(number, sum(sizes))
        self.sizes = sizes
        views = [torch.split(room[: sum(sizes)], sizes) for room in self.rooms]
        self.gradients = [[one.view_as(each) for one, each in zip(of, parameters, strict=True)] for of in views]
        self.memories += [Memory() for _ in range(number - len(self.memories))]

    def infer(self, batch: CountBatch, steps: int) -> FullGaussian:
        """q(h | X) after `steps` Newton steps."""
        found = infer(self._model(), all_documents_of(batch), steps, ROUNDING)
        return FullGaussian(found.mean, found.stretch, found.root)

    def infer_means(self, batch: CountBatch, steps: int) -> Tensor:
        """The means only, without a gradient and curvature at the end, [B, K]."""
        return infer(self._model(), all_documents_of(batch), steps, ROUNDING, with_root=False).mean

    def _model(self) -> CompiledModel:
        return CompiledModel(self.parameters, self.decoder.group_of_word, LIMITS)

    def _model_of(self, chosen: SampledWords) -> CompiledModel:
        some = self.decoder.of_words(chosen)
        of_words = some["linear.weight"], some["length_weights"], some["linear.bias"]
        parameters = [*self.parameters[:-4], *of_words, self.decoder.group_log_scales]
        return CompiledModel(parameters, some["group_of_word"], LIMITS)


def all_documents_of(batch: CountBatch) -> Documents:
    return documents_of(batch, slice(0, len(batch)), _starts_and_end(batch))


def documents_of(batch: CountBatch, rows: slice, starts: Tensor) -> Documents:
    """Documents of a batch; `starts` has the first entry of each, and the end."""
    own = starts[rows.start : rows.stop + 1]
    entries = slice(int(own[0]), int(own[-1]))
    return Documents(own, batch.words[entries], batch.counts[entries], batch.lengths[rows])


def _starts_and_end(batch: CountBatch) -> Tensor:
    return torch.cat([batch.starts, batch.starts.new_tensor([len(batch.words)])])
