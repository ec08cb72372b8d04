"""The service needs its own extra and nothing else: it starts and answers where no other extra is installed."""

import subprocess
import sys

import pytest
from served import texts

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

# what the other extras bring, and the development environment, but for pyarrow, which scikit-learn looks for among
# the modules; `find_spec` does not find what is None here
OTHER_EXTRAS = (
    *("plotly", "openTSNE", "matplotlib", "jinja2"),
    *("tomotopy", "gensim", "pyro", "pattern", "ray", "wordcloud", "contextualized_topic_models"),
)
SCRIPT = f"""
import sys, time, warnings
class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pyarrow":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing)
sys.modules.update(dict.fromkeys({OTHER_EXTRAS!r}))
warnings.simplefilter("ignore")  # starlette would rather have another client than httpx
from fastapi.testclient import TestClient
from varitext.corpora import load_documents
from varitext.documents.model import DocumentModel
from varitext.serve.application import create_application

model = DocumentModel(latent_dim=3, epochs=2, threads=1).fit(load_documents(sys.argv[1], "all"))
with TestClient(create_application({{"mine": model}}), base_url="http://127.0.0.1") as client:
    assert client.get("/").status_code == 200
    asked = {{"text": "moon orbit", "n": 1}}
    while client.get("/api/models").json()["models"][0]["documents"] == "reading":
        time.sleep(0.02)
    assert client.post("/api/models/mine/similar-documents", json=asked).json()["among"] == 90
    assert client.post("/api/models/mine/explain", json={{"text": "moon orbit"}}).json()["known_words"] == 2
    while (drawn := client.get("/api/models/mine/map").json())["state"] == "drawing":
        time.sleep(0.02)
    assert drawn["state"] == "ready" and len(drawn["x"]) == 90
    assert "varitext_requests_total" in client.get("/metrics").text
print([name for name in sys.modules if name.startswith(("varitext.report", "varitext.cli"))])
"""


def test_the_service_starts_and_answers_without_any_other_extra(tmp_path):
    (tmp_path / "mine.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in texts()))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "mine.jsonl")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "[]\n"), run.stderr
