"""How a fit is watched and where it goes on from, for the one network of a plain fit and for those of folds."""

from pathlib import Path
from typing import NamedTuple

from varitext.training.settings import PartOfProgress, Progress


class TrainingRun(NamedTuple):
    progress: Progress | None = None
    checkpoint: Path | None = None
    resume: bool = False

    def on_all_questions(self, folds: int) -> "TrainingRun":
        """The run of the network on all questions, where those of folds come after it."""
        return self._replace(progress=self._part(0.0, 1.0, folds))

    def on_fold(self, fold: int, folds: int) -> "TrainingRun":
        """The run of one fold, from 0. Each of F folds trains on (F - 1)/F of the questions: F - 1 networks in all."""
        begun = 1 + fold * (folds - 1) / folds
        path = self.checkpoint
        path = path and path.with_name(f"{path.stem}-fold-{fold + 1}{path.suffix}")
        return self._replace(progress=self._part(begun, begun + (folds - 1) / folds, folds), checkpoint=path)

    def of_member(self, number: int, members: int) -> "TrainingRun":
        """The run of one network of an ensemble, from 0. The first has the checkpoint's own name."""
        path = self.checkpoint
        if path and number:
            path = path.with_name(f"{path.stem}-network-{number + 1}{path.suffix}")
        return self._replace(progress=self._part(number, number + 1, members), checkpoint=path)

    def note(self, message: str) -> None:
        if self.progress:
            self.progress.note(message)

    def _part(self, begun: float, ended: float, networks: int) -> Progress | None:
        return self.progress and PartOfProgress(self.progress, begun / networks, ended / networks)
