"""Faults by name: an audit found that no test told them. Text that must be there exactly once, and what it becomes."""

from typing import NamedTuple


class Fault(NamedTuple):
    name: str
    path: str  # in the package
    before: str
    after: str


FAULTS = [
    Fault(
        "the last weights are kept, not the best",
        "training/trainer.py",
        "if mean < state.best or state.step == 0:",
        "if True:",
    ),
    Fault(
        "the last weights are in the model after training, the best are only recorded",
        "training/trainer.py",
        "        self.model.load_state_dict(self.best_weights)\n        return self.state",
        "        pass\n        return self.state",
    ),
    Fault(
        "documents weigh N^+0.7 instead of N^-0.7",
        "documents/task.py",
        "batch.lengths.pow(-self.objective.length_exponent)",
        "batch.lengths.pow(self.objective.length_exponent)",
    ),
    Fault(
        "every epoch has the same shuffle",
        "documents/task.py",
        '(stream(self.settings.seed, "shuffles"), epoch)',
        '(stream(self.settings.seed, "shuffles"), 0)',
    ),
    Fault(
        "a resumed run starts its epoch anew",
        "training/trainer.py",
        "itertools.islice(self.task.batches(epoch), done, None)",
        "itertools.islice(self.task.batches(epoch), 0, None)",
    ),
]
