"""docs/toy.html: its formulas against numerical integrals and simulation, in a real browser."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from report_page import FETCHING, Page
from scipy.integrate import quad
from scipy.stats import norm

from varitext.latent import DiagonalGaussian, kl

TOY = Path(__file__).resolve().parents[1] / "docs" / "toy.html"
CHROMIUM = os.environ.get("VARITEXT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
X, NOISE = 1.5, 0.6

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


def values_on_page(folder: Path, **settings: object) -> dict[str, float]:
    """What the page shows with these settings; `fit` has it fit q first."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom"]
    address = f"{TOY.as_uri()}#{urlencode(settings)}"
    html = subprocess.run([CHROMIUM, *options, address], capture_output=True, text=True, check=True).stdout
    return {name: float(value) for name, value in re.findall(r'<output id="(\w+)" data-value="([^"]+)"', html)}


def log_likelihood(h, decoder, strength):
    return norm.logpdf(X, strength * (h if decoder == "linear" else np.square(h)), NOISE)


@in_browser
@pytest.mark.parametrize("decoder", ["linear", "square"])
def test_the_bounds_are_right(decoder, tmp_path):
    mean, std, strength, samples, beta = 0.7, 0.5, 1.3, 8, 2.0
    found = values_on_page(tmp_path, decoder=decoder, mean=mean, std=std, strength=strength, samples=samples, beta=beta)
    q = norm(mean, std)
    evidence = quad(lambda h: np.exp(log_likelihood(h, decoder, strength)) * norm.pdf(h), -9, 9, points=[0])[0]
    likelihood = quad(lambda h: q.pdf(h) * log_likelihood(h, decoder, strength), mean - 9 * std, mean + 9 * std)[0]
    gaussian = DiagonalGaussian(torch.tensor([[mean]]), torch.tensor([[std]]).log())
    divergence = kl(gaussian, DiagonalGaussian.standard(gaussian.mean)).item()
    assert found["evidence"] == pytest.approx(np.log(evidence), abs=1e-5)
    assert found["likelihood"] == pytest.approx(likelihood, abs=1e-6)
    assert found["kl"] == pytest.approx(divergence, abs=1e-6)
    assert found["elbo"] == pytest.approx(likelihood - divergence, abs=1e-5)
    assert found["objective"] == pytest.approx(likelihood - beta * divergence, abs=1e-5)
    h = q.rvs((samples, 20_000), random_state=0)
    log_weights = log_likelihood(h, decoder, strength) + norm.logpdf(h) - q.logpdf(h)
    drawn = np.log(np.exp(log_weights).mean(0))
    error = drawn.std() * (1 / 20_000 + 1 / 2000) ** 0.5
    assert found["weighted"] == pytest.approx(drawn.mean(), abs=5 * error)
    assert found["elbo"] < found["weighted"] < found["evidence"]


@in_browser
def test_q_collapses_under_a_heavy_kl(tmp_path):
    """The best q of a linear Gaussian model has a closed form for every weight of the KL."""
    strength, beta = 1.2, 40.0
    precision = 1 + strength**2 / NOISE**2 / beta
    best = norm(strength * X / NOISE**2 / beta / precision, precision**-0.5)
    found = values_on_page(tmp_path, decoder="linear", strength=strength, beta=beta, fit=1)
    divergence = 0.5 * (best.mean() ** 2 + best.var() - 1) - np.log(best.std())
    assert found["kl"] == pytest.approx(divergence, abs=0.002)  # sliders have steps of 0.01
    assert found["kl"] < 0.01 < found["gap"]


def test_the_page_fetches_nothing():
    page = Page(TOY.read_text(encoding="utf-8"))
    assert "default-src 'none'" in page.policy
    assert not [value for name, value in page.attributes if name in FETCHING]
