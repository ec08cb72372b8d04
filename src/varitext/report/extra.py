"""The packages of the extra `report`."""

from importlib.util import find_spec

from varitext.errors import InputError

PACKAGES = ("jinja2", "matplotlib", "openTSNE", "plotly")


def check_drawing_packages() -> None:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise InputError(f"a report needs {' and '.join(missing)}: pip install 'varitext[report]'")
