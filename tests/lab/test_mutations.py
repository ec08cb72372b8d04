"""The mutation script: what it changes, what it leaves alone, and that a changed function is the one that runs."""

import types

import pytest

from lab.mutants.operators import mutants_of, mutated_code
from lab.mutants.running import swap

SOURCE = '''
"""Words."""
import functools

def cached(function):
    return functools.wraps(function)(lambda *given: function(*given))

class Shape:
    @property
    def area(self):
        """Words."""
        if self.side < 0:
            raise ValueError("words" + f"{self.side}")
        return self.side ** 2

@cached
def largest(values, start=0):
    return max(values, default=start + 1)
'''


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "shape.py"
    path.write_text(SOURCE)
    made = types.ModuleType("shape")
    exec(compile(SOURCE, str(path), "exec"), made.__dict__)
    return made, path


def test_faults_are_of_what_is_computed_not_of_words(module):
    _, path = module
    found = {(one.before, one.after) for one in mutants_of(path, path.parent)}
    assert ("self.side ** 2", "self.side * 2") in found and ("self.side < 0", "self.side <= 0") in found
    assert ("max(values, default=start + 1)", "min(values, default=start + 1)") in found
    assert ("max(values, default=start + 1)", "max(values)") in found
    assert not any("words" in before.lower() and "if" not in before for before, _ in found)


def test_a_mutant_is_what_runs_also_behind_decorators(module):
    made, path = module
    numbers = {(one.before, one.after): one.number for one in mutants_of(path, path.parent)}
    shape = made.Shape()
    shape.side = 3
    functions = [made.Shape.area.fget, made.largest.__wrapped__]
    assert shape.area == 9 and made.largest([4, 7]) == 7
    swap(functions, mutated_code(path, numbers["self.side ** 2", "self.side * 2"]))
    assert shape.area == 6 and made.largest([4, 7]) == 7
    swap(functions, mutated_code(path, numbers["max(values, default=start + 1)", "min(values, default=start + 1)"]))
    assert shape.area == 9 and made.largest([4, 7]) == 4
