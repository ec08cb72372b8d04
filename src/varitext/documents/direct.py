"""For a model that does not learn by gradients in our loop: it learns by itself, in rounds.

Such a model has

    fit_without_gradients(train, settings)

a generator. It yields after every round the share of the work that is done, from 0 to 1, and then holds what it has
learned so far. Between rounds come what every fit has: the held-out score, the history, the time limit, Ctrl-C.
"""

import time

from varitext.corpora.sharded_counts import in_memory
from varitext.documents.task import DocumentTask
from varitext.models.documents.base import DocumentNetwork, LearnsDirectly
from varitext.runtime.interruption import Interruption
from varitext.runtime.randomness import seeded, stream
from varitext.training.settings import Progress, TrainingSettings, TrainingState


class DirectTrainer:
    """In the place of `training.Trainer`; afterwards the model holds what scored best on the held-out documents."""

    def __init__(
        self,
        model: DocumentNetwork,
        task: DocumentTask,
        settings: TrainingSettings,
        progress: Progress | None = None,
    ):
        if not isinstance(model, LearnsDirectly):
            raise TypeError(f"{type(model).__name__} has no fit_without_gradients")
        self.learner = model
        self.model, self.task, self.settings, self.progress = model, task, settings, progress
        self.state = TrainingState()

    def train(self, resume: bool = False) -> TrainingState:
        """Run to the end. The global random state is left as it was found."""
        if resume and self.progress:
            self.progress.note("this model keeps no checkpoint: starting anew")
        with seeded(stream(self.settings.seed, "training noise"), self.task.device), Interruption() as interruption:
            started = time.monotonic()
            for share in self.learner.fit_without_gradients(in_memory(self.task.train), self.settings):
                self.state.step += 1
                self.state.seconds = time.monotonic() - started
                self._round(share)
                self.state.stopped = self._reason_to_stop(interruption)
                if self.state.stopped:
                    break
        self.state.stopped = self.state.stopped or "finished"
        self.model.load_state_dict(self.best_weights)
        return self.state

    def _round(self, share: float) -> None:
        self.model.eval()
        score, state = self.task.score(self.model), self.state
        if score.loss < state.best or state.step == 1:
            state.best, state.best_step = score.loss, state.step
            self.best_weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        record = {"step": state.step, "epoch": round(share * self.settings.epochs, 3)}
        state.history.append(record | {"seconds": round(state.seconds, 3)} | score.metrics)
        if self.progress:
            self.progress.step(share, score.metrics["dev_elbo_per_word"], score.metrics.get("dev_kl", 0.0))
            self.progress.round(state.history[-1])

    def _reason_to_stop(self, interruption: Interruption) -> str:
        if interruption.requested:
            return "interrupted"
        limit = self.settings.time_limit
        return "time" if limit is not None and self.state.seconds >= limit else ""
