"""Write a small model folder of the present format as text, to be kept for ever.

    python tests/formats/make.py

Run once when the format's version goes up; the test reads every file here with whatever varitext has become.
"""

import base64
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from synthetic import topic_documents  # noqa: E402

from varitext import DocumentModel  # noqa: E402
from varitext.models.documents.nvdm import NVDM  # noqa: E402
from varitext.models.documents.recipe import Recipe  # noqa: E402
from varitext.store import FORMAT_VERSION  # noqa: E402


def main() -> None:
    path = HERE / f"format-{FORMAT_VERSION}.json"
    if path.exists():
        sys.exit(f"{path} exists: formats that were released do not change")
    recipe = NVDM.recipe
    NVDM.recipe = staticmethod(lambda *size: _narrow(recipe(*size)))  # a few kilobytes instead of a megabyte
    counts = topic_documents(documents=100, words=20, topics=2)
    model = DocumentModel(latent_dim=2, epochs=3).fit(counts)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        files = {file.name: base64.b64encode(file.read_bytes()).decode() for file in Path(folder, "model").iterdir()}
    stored = {"files": files, "counts": counts[:3].toarray().tolist(), "vectors": model.transform(counts[:3]).tolist()}
    stored["topics"] = [list(topic.words) for topic in model.latent_dimensions(3)]
    path.write_text(json.dumps(stored) + "\n")


def _narrow(recipe: Recipe) -> Recipe:
    return dataclasses.replace(recipe, architecture=recipe.architecture | {"hidden_dim": 4})


if __name__ == "__main__":
    main()
