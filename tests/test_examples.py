"""The examples run as a user would run them, and show what they say."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_sentence_model_learns():
    path = EXAMPLES / "sentence_model.py"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    before, after = map(float, re.search(r"([\d.]+) nats before, ([\d.]+) after", done.stdout).groups())
    assert after < before
    likely = done.stdout.split("where built ... ->")[1].split()
    assert likely and set(likely) <= set(topics_of(path)["where"].split())


def topics_of(path: Path) -> dict[str, str]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.TOPICS
