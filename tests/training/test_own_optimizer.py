"""A user's optimizer and schedule in the training loop: same steps as torch alone, checkpoints, resume, refusals."""

import dataclasses

import pytest
import torch
from synthetic import topic_documents
from torch import nn

from varitext import DocumentModel
from varitext.errors import InputError
from varitext.training.optimizer import Optimization, TorchOptimizer
from varitext.training.settings import Score, StepLoss, TrainingSettings
from varitext.training.trainer import Trainer

SETTINGS = TrainingSettings(epochs=8, learning_rate=0.5, patience=99, kl_warm_up=0.0)
TARGET = torch.tensor([[1.0, -2.0, 3.0]])


class Squares:
    """The loss is a squared distance; the order of the batches matters."""

    fingerprint, steps_per_epoch = "squares", 2

    def batches(self, epoch):
        return iter([TARGET * (epoch + 1), -TARGET])

    def loss(self, model, batch, kl_weight):
        loss = (model.weight - batch).square().sum() + model.bias.square().sum()
        return StepLoss(loss, loss.detach(), torch.tensor(0.0))

    def score(self, model):
        return Score((model.weight - TARGET).square().sum().item(), {})


class Stops:
    def step(self, share_done, elbo, kl): ...

    def round(self, record):
        if record["step"] == 6:
            raise KeyboardInterrupt

    def note(self, message): ...


class CountingSGD(torch.optim.SGD):
    """Keeps a number for each parameter and in its group, and steps by both."""

    def step(self, closure=None):
        group = self.param_groups[0]
        group["weight_sum"] = group.get("weight_sum", 1.0) + 0.1
        for parameter in group["params"]:
            state = self.state[parameter]
            state["count"] = state.get("count", 0) + 1
            parameter.data.mul_(1 - 0.01 * state["count"] / group["weight_sum"])
        return super().step(closure)


OPTIMIZERS = {
    "RAdam": lambda parameters: torch.optim.RAdam(parameters, lr=0.1),
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, nesterov=True),
    "plain SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "Adafactor": lambda parameters: torch.optim.Adafactor(parameters, lr=0.1),
    "groups": lambda parameters: torch.optim.NAdam(
        [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.02}], lr=0.1
    ),
    "numbers": lambda parameters: CountingSGD(parameters, lr=0.01),
}


def fall(share: float) -> float:
    return 1 - share / 2


def run(optimizer=None, schedule=fall, checkpoint=None, progress=None, **changes):
    torch.manual_seed(3)
    settings = dataclasses.replace(SETTINGS, **changes)
    model = nn.Linear(3, 1)
    return Trainer(model, Squares(), settings, checkpoint, progress, optimization=Optimization(optimizer, schedule))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_torch_alone_with_a_lambda_schedule(name):
    ours = run(OPTIMIZERS[name], gradient_clip=1e9)
    ours.task.score = lambda model: Score(-ours.state.step, {})  # keep the last weights
    ours.train()
    torch.manual_seed(3)
    model = nn.Linear(3, 1)
    theirs = OPTIMIZERS[name](list(model.parameters()))
    schedule = torch.optim.lr_scheduler.LambdaLR(theirs, lambda step: fall(step / 16))
    for epoch in range(8):
        for batch in Squares().batches(epoch):
            theirs.zero_grad()
            Squares().loss(model, batch, 1.0).loss.backward()
            theirs.step()
            schedule.step()
    torch.testing.assert_close(ours.model.weight, model.weight, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours.model.bias, model.bias, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_resumed_run_ends_with_the_same_bits(name, tmp_path):
    whole = run(OPTIMIZERS[name], checkpoint=tmp_path / "whole")
    whole.train()
    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        run(OPTIMIZERS[name], checkpoint=path, progress=Stops()).train()
    resumed = run(OPTIMIZERS[name], checkpoint=path)
    resumed.train(resume=True)
    ends = [one.learner.tensors() for one in (whole, resumed)]
    assert ends[0].keys() == ends[1].keys() and whole.state.history[-1]["step"] == 16
    assert all(torch.equal(tensor, ends[1][key]) for key, tensor in ends[0].items())


def test_its_rate_is_the_peak_of_the_settings_schedule_and_its_groups_keep_their_ratio():
    own = run(OPTIMIZERS["groups"], schedule=None)
    rates = [record["learning_rate"] for record in own.train().history]
    plain = [record["learning_rate"] for record in run(schedule=None).train().history]
    assert rates == pytest.approx([0.1 / 0.5 * rate for rate in plain])  # a peak of 0.1 in place of 0.5
    rates = [group["lr"] for group in own.optimizers[0].own.param_groups]
    assert rates[0] > 0 and rates[1] == pytest.approx(0.2 * rates[0])


def test_a_schedule_alone_is_a_factor_of_the_rate_of_adamw():
    assert [record["learning_rate"] for record in run().train().history] == pytest.approx(
        [0.5 * fall(step / 16) for step in range(0, 17, 2)]
    )


@pytest.mark.parametrize("factor", [-0.1, float("nan"), float("inf")])
def test_a_schedule_of_no_factor_is_refused(factor):
    with pytest.raises(InputError, match=r"^schedule\(0\) is .*: it must be a factor of the learning rate"):
        run(schedule=lambda share: factor).train()


def test_what_cannot_work_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"must return a torch.optim.Optimizer, not \[\]"):
        run(lambda parameters: [])
    with pytest.raises(InputError, match="LBFGS needs a closure"):
        run(torch.optim.LBFGS)
    with pytest.raises(InputError, match="keeps 'seen', a list: a checkpoint holds tensors and numbers only"):
        one = TorchOptimizer([nn.Parameter(torch.zeros(1))], OPTIMIZERS["SGD"])
        one.own.state[one.parameters[0]]["seen"] = [1]
        one.tensors()
    run(OPTIMIZERS["RAdam"], checkpoint=tmp_path / "file").train()
    for other, named in ((None, "RAdam, now None"), (OPTIMIZERS["SGD"], "RAdam, now SGD")):
        with pytest.raises(InputError, match=rf"other settings \(optimizer {named}\)"):
            run(other, checkpoint=tmp_path / "file").train(resume=True)


def test_parameters_that_it_was_not_given_keep_their_values_and_collect_no_gradient():
    one = run(lambda parameters: torch.optim.SGD(parameters[:1], lr=0.01))
    before = one.model.bias.item()
    one.train()
    assert one.model.bias.item() == before and one.model.bias.grad is None


def test_document_models_learn_with_it_and_a_model_without_gradients_refuses_it():
    counts, seen = topic_documents(documents=80), []

    def radam(parameters):
        seen.append(len(parameters))
        return torch.optim.RAdam(parameters, lr=1e-2)

    settings = {"latent_dim": 3, "epochs": 3, "threads": 1}
    model = DocumentModel("nvdm", updates="alternating", **settings).fit(counts, optimizer=radam, schedule=fall)
    first, *_, last = model.fitted_.history
    assert last["dev_perplexity"] < first["dev_perplexity"] and last["learning_rate"] == pytest.approx(0.005)
    assert len(seen) == 2  # one for each side
    with pytest.raises(InputError, match="LDA learns without gradients"):
        DocumentModel("lda", **settings).fit(counts, optimizer=radam)
