"""Memory of a process, by its own account."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_the_peak_is_that_of_the_process_and_not_of_the_one_that_started_it():
    held = np.ones(400 * 2**17)  # 400 MB here, which the process below does not have
    code = "from varitext.runtime.memory import peak_so_far; print(peak_so_far())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 1 < float(done.stdout) < 200 and held.sum() == len(held)
