"""Functions of arrays: against scipy's and torch's, also at minus infinity and far from zero."""

import numpy as np
import pytest
import scipy.special
import torch

from varitext.layers.functions import Functions, expit, functions_for, logit

VALUES = np.array([[-800.0, -2.5, 0.0], [0.3, 40.0, 800.0]])
PARTLY_IMPOSSIBLE = np.array([[-np.inf, 0.5, 3.0], [-np.inf, -np.inf, -1.0]])


def test_log_odds_there_and_back():
    np.testing.assert_allclose(expit(VALUES), scipy.special.expit(VALUES), rtol=1e-14)
    probability = np.array([1e-12, 0.2, 0.5, 1 - 1e-12])
    np.testing.assert_allclose(logit(probability), scipy.special.logit(probability), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in Functions._fields if name.startswith("log")])
def test_arrays_and_tensors_have_the_same_functions(name):
    values = np.array([[0.0, 0.5, 3.0]]) if name == "log" else VALUES if name == "logsigmoid" else PARTLY_IMPOSSIBLE
    of_array, of_tensor = (getattr(functions_for(one), name) for one in (values, torch.from_numpy(values)))
    np.testing.assert_allclose(of_array(values), of_tensor(torch.from_numpy(values)).numpy(), rtol=1e-14)
