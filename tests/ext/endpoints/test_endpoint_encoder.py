"""The encoder: definitions, keys, runs with a budget, and the command line."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from sklearn.base import clone

import karat
from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.registry import load_object
from karat.core.task import Task
from karat.errors import ContractError, DefinitionError, JobsFailed, KaratWarning
from karat.ext.endpoints import endpoint_delivery
from karat.ext.endpoints.endpoint_encoder import EndpointEncoder
from karat.models.adapters import adapt
from karat.models.model_identity import model_identity
from karat.results.load import status

from ...endpoint_server import count_tokens, serving
from .served_encoders import KEY, encoder_of

pytest.importorskip("httpx")


def test_it_is_found_where_it_was_in_earlier_versions():
    assert load_object("karat.models.contrib.endpoints:EndpointEncoder") is EndpointEncoder
    assert karat.models.EndpointEncoder is EndpointEncoder
    assert Catalog().model("HTTP://localhost:1/v1#words").prototype.model == "words"


def test_a_url_is_a_model(tmp_path):
    catalog = Catalog()
    model = catalog.model("http://localhost:8080/v1#BAAI/bge-small.txt")
    assert (model.name, model.prototype.model) == ("bge-small.txt", "BAAI/bge-small.txt")
    assert catalog.model("mine=http://localhost:8080/v1#m").name == "mine"
    assert catalog.model("http://localhost:8080/v1").name == "localhost-8080"
    file = tmp_path / "models.yaml"
    file.write_text(
        "models:\n  paid:\n    use: endpoint\n    params:\n"
        "      {url: 'http://localhost:8080/v1', model: m, price_per_million_tokens: 0.02}\n"
    )
    paid = Catalog(file).model("paid").prototype
    assert isinstance(paid, EndpointEncoder) and paid.price_per_token == pytest.approx(2e-8)


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"url": f"https://me:{KEY}@example.com/v1"}, "password"),
        ({"url": f"https://example.com/v1?key={KEY}"}, "api_key_env"),
        ({"url": "localhost:8080"}, "address"),
        ({"url": "http://[1"}, "address"),
        ({"url": 3}, "address"),
        ({"api_key_env": KEY}, "environment variable"),
        ({"dialect": "opnai"}, '"openai"'),
        ({"batch_tokens": 0}, "batch_tokens"),
        ({"dimensions": 1.5}, "dimensions"),
        ({"requests_per_minute": -1}, "requests_per_minute"),
        ({"price_per_million_tokens": float("nan")}, "price_per_million_tokens"),
        ({"prompt": {"quary": ""}}, "prompt"),
    ],
)
def test_a_wrong_parameter_is_refused_without_its_secret(params, word):
    with pytest.raises(DefinitionError, match=word) as error:
        EndpointEncoder(**{"url": "http://localhost:1/v1", **params})
    assert KEY not in str(error.value)


def test_the_names_of_stored_vectors_are_those_of_earlier_versions():
    """Under another name, vectors that were paid for would be asked for again."""
    url = "https://api.example.com/v1"
    plain = EndpointEncoder("http://localhost:1/v1", "m")
    large = EndpointEncoder(url, "text-3", dimensions=256, revision="2", prompt="query: ")
    assert plain.fingerprint() == "d8570031dc7dcc2406f78ec7d93e641c None"
    assert large.fingerprint() == "dd90b2c9347f593684d71bde6c6f02ce 'query: '"


def test_prices_and_limits_do_not_change_the_identity():
    plain = EndpointEncoder("http://localhost:1/v1", "m")
    paid = clone(plain).set_params(price_per_million_tokens=1.0, requests_per_minute=5, timeout=1)
    other = clone(plain).set_params(revision="2")
    identities = [model_identity(adapt(each, "m")) for each in (plain, paid, other)]
    assert identities[0] == identities[1] != identities[2]
    assert plain.family() == paid.family() != other.family()
    assert set(pickle.loads(pickle.dumps(plain)).__dict__) == set(plain.get_params())


def test_a_missing_library_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(EndpointEncoder, "needs", ("not_installed_library",))
    model = adapt(EndpointEncoder("http://localhost:1/v1"))
    assert 'pip install "karat[endpoint]"' in model.unavailable


# -- keys -----------------------------------------------------------------------------------


def test_the_key_is_read_from_the_environment(monkeypatch):
    with serving(key=KEY) as server:
        made = encoder_of(server, api_key_env="MY_KEY")
        with pytest.raises(ContractError, match="MY_KEY is not set"):
            made.encode(["a"])
        monkeypatch.setenv("MY_KEY", f"{KEY}\n")
        assert made.encode(["a"]).shape == (1, 32)
        monkeypatch.setenv("MY_KEY", "wröng")
        with pytest.raises(ContractError, match="MY_KEY") as error:
            made.encode(["b"])
        assert "wröng" not in str(error.value)


def test_a_server_that_repeats_the_key_does_not_reveal_it(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with serving(key="another") as server:
        with pytest.raises(ContractError, match=r"401.*\*\*\*.*MY_KEY") as error:
            encoder_of(server, api_key_env="MY_KEY").encode(["a"])
    assert KEY not in str(error.value)
    assert error.value.__cause__ is None


# -- runs -----------------------------------------------------------------------------------


def text_task(name="topics", texts=60, **changes):
    words = ["apple pear plum", "steel iron zinc"]
    rows = [f"{words[i % 2]} number {name} {i}" for i in range(texts)]
    frame = pd.DataFrame({"text": rows, "y": ["ab"[i % 2] for i in range(texts)]})
    data = Dataset.from_columns(frame, ["text"], "y", name=name)
    return Task(
        name, data, **{"metrics": ["acc"], "split": {"use": "kfold", "folds": 2}, **changes}
    )


def run_of(server, *tasks, output, **options):
    params = options.pop("params", {"price_per_million_tokens": 10.0, "batch_texts": 10})
    made = {"paid": encoder_of(server, **params)}
    return karat.evaluate(made, list(tasks), output=output, **options)[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_tokens_and_price_are_on_every_row_and_in_the_leaderboard(tmp_path, workers):
    with serving() as server:
        run = run_of(server, text_task(), output=tmp_path / "out", workers=workers)
        again = run_of(server, text_task(), output=tmp_path / "again", workers=workers)
        assert server.texts.total() == len(server.texts) == 60
    assert [r["scores"]["acc"] for r in run.records()[0]["views"]] == [1.0]
    for record in (*run.records(), *again.records()):
        assert record["tokens"] == record["embed_tokens"] == server.tokens
        assert record["price"] == pytest.approx(server.tokens * 1e-5)
        assert record["requests"] == 6 and record["request_seconds_p95"] > 0
    assert run.records()[0]["texts_per_second"] > 0
    table = pd.read_csv(run.folder / "scores" / "jobs.csv")
    assert table["tokens"].tolist() == [server.tokens] * 2
    board = karat.leaderboard([run])
    assert board.loc["paid", "tokens"] == server.tokens
    assert board.loc["paid", "price"] == pytest.approx(server.tokens * 1e-5)
    assert "price" in str(board) and "$0.0048" in str(board)  # 60 texts of 8 tokens


@pytest.mark.parametrize("workers", [0, 2])
def test_conspicuous_vectors_are_in_the_notes_of_each_job(tmp_path, workers):
    with serving(answer="zero") as server:
        for name in ("out", "again"):  # requested, then stored
            run = run_of(server, text_task(), output=tmp_path / name, workers=workers)
            assert len(run.records()) == 2
            for record in run.records():
                notes = " ".join(record["notes"])
                assert "60 of 60 vectors of the endpoint are zero" in notes
                assert notes.count("all 60 texts got the same vector") == 1


def test_other_models_have_no_columns_of_endpoints(tmp_path):
    run = karat.evaluate({"n": lambda texts: [[len(t), 1] for t in texts]}, [text_task()],
                         output=tmp_path)[0]  # fmt: skip
    assert not {"tokens", "price"} & {*karat.leaderboard([run]), *run.records()[0]}
    assert "tokens" not in (run.folder / "scores" / "jobs.csv").read_text()


def test_corrupted_texts_are_counted_and_cached(tmp_path):
    task = text_task(corruptions={"typos": [0.3]})
    with serving() as server:
        run = run_of(server, task, output=tmp_path / "a", workers=2)
        sent = server.texts.total()
        assert sent > 60 and set(server.texts.values()) == {1}
        again = run_of(server, task, output=tmp_path / "b")
        assert server.texts.total() == sent
    for one, other in zip(run.records(), again.records(), strict=True):
        assert one["tokens"] > one["embed_tokens"] and one["tokens"] == other["tokens"]
    total = karat.leaderboard([run]).loc["paid", "tokens"]
    embedded = run.records()[0]["embed_tokens"]
    assert total == sum(r["tokens"] - embedded for r in run.records()) + embedded


def test_inference_is_not_timed_on_cached_vectors(tmp_path):
    with serving() as server:
        run = run_of(server, text_task(), output=karat.Output(tmp_path, inference=[1]))
    record = run.records()[0]
    assert not record.get("inference") and any("inference" in note for note in record["notes"])


def test_truncated_texts_are_a_note_of_the_job(tmp_path):
    with serving(limit=6) as server:
        run = run_of(server, text_task(), output=tmp_path)
    assert "60 of 60 texts were over the model's limit and truncated" in run.records()[0]["notes"]


def test_a_budget_stops_before_it_is_passed(tmp_path):
    tasks = [text_task("first", 20), text_task("second", 200)]
    with serving() as server:
        first = sum(count_tokens(text) for text in tasks[0].dataset.items)
        budget = 1e-5 * (first * 12)
        with pytest.warns(KaratWarning, match=r"budget of .* 2 of 4 jobs are finished; resume"):
            run = run_of(server, *tasks, output=tmp_path, workers=karat.Machines(2, budget=budget))
        assert server.tokens * 1e-5 <= budget
        assert {r["task"]: r["status"] for r in run.records()} == {"first": "ok"}
        sent = server.texts.total()
        assert 20 < sent < 220
        assert int(status([run.folder])["left"].sum()) == 2
        again = run_of(server, *tasks, output=tmp_path, resume=True)
        assert again.folder == run.folder and len(again.records()) == 4
        assert server.texts.total() == len(server.texts) == 220


def test_a_budget_requires_a_price(tmp_path):
    with serving() as server:
        with pytest.raises(JobsFailed, match="price_per_million_tokens"):
            run_of(server, text_task(), output=tmp_path, params={}, on_failure="raise",
                   workers=karat.Machines(budget=1.0))  # fmt: skip
        assert server.requests == 0
    with pytest.raises(DefinitionError, match="budget"):
        run_of(server, text_task(), output=tmp_path, workers=karat.Machines(budget=-1.0))
    with pytest.raises(DefinitionError, match="budget requires"):
        run_of(server, text_task(), output=tmp_path,
               workers=karat.Machines(budget=1.0, engine="dask"))  # fmt: skip


def test_a_server_that_gives_up_leaves_the_jobs_to_resume(tmp_path, monkeypatch):
    monkeypatch.setattr(endpoint_delivery, "_wait", lambda stop, seconds: None)
    with serving(script=[200, 200] + [429] * 99) as server:
        with pytest.warns(KaratWarning, match="429.*0 of 2 jobs are finished"):
            run = run_of(server, text_task(), output=tmp_path)
        assert run.records() == []
        server.script = []
        again = run_of(server, text_task(), output=tmp_path, resume=True)
        assert [record["status"] for record in again.records()] == ["ok", "ok"]
        assert server.texts.total() == len(server.texts) == 60


def test_without_a_cache_nothing_is_left_and_nothing_sent_twice_in_a_run(tmp_path):
    with serving() as server:
        tasks = [text_task(), text_task(corruptions={"typos": [0.3]}, name="topics")]
        tasks[1] = Task("noisy", tasks[0].dataset, metrics=["acc"], corruptions={"typos": [0.3]},
                        split={"use": "kfold", "folds": 2})  # fmt: skip
        run_of(server, *tasks, output=karat.Output(tmp_path / "out", cache=False), workers=2)
        assert set(server.texts.values()) == {1}
        assert list((tmp_path / "cache").rglob("*.journal")) == []


def test_jobs_with_limits_request_their_texts_once(tmp_path):
    with serving(slow=0.02) as server:
        task = text_task(max_runtime_seconds=60)
        run = run_of(server, task, output=tmp_path, workers=2)
        assert [record["status"] for record in run.records()] == ["ok", "ok"]
        assert server.texts.total() == len(server.texts) == 60


# -- the command line -----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a task on 300 texts."""
    made = tmp_path / "work"
    made.mkdir()
    rows = [f"{'apple pear' if i % 2 else 'iron zinc'} number {i}" for i in range(300)]
    frame = pd.DataFrame({"text": rows, "y": ["ab"[i % 2] for i in range(300)]})
    frame.to_csv(made / "topics.csv", index=False)
    (made / "suite.yaml").write_text(
        "datasets:\n  topics-data: {reader: columns, path: topics.csv, fields: [text], target: y}\n"
        "tasks:\n  topics: {dataset: topics-data, metrics: [acc],\n"
        "    probe: {use: trained, head: knn}, split: {use: kfold, folds: 3}}\n"
        "suites:\n  mine: {tasks: [topics]}\n"
    )
    # so that the tests do not wait: imported by the process of the command
    (made / "fast.py").write_text(
        "import karat.ext.endpoints.endpoint_delivery as module\nmodule.SHORTEST = 0.001\n"
    )
    return made


def command(folder, server, *more):
    """Return the arguments of karat run; requests have five texts."""
    (folder / "model.yaml").write_text(
        f"models:\n  paid:\n    use: endpoint\n    params: {{url: '{server.url}/v1',\n"
        "      model: words-small, api_key_env: MY_KEY, batch_texts: 5, concurrency: 2,\n"
        "      price_per_million_tokens: 10}\n"
    )
    definitions = [f"--define={folder / each}" for each in ("suite.yaml", "model.yaml", "fast.py")]
    return ["run", "mine", "-m", "paid", "-o", str(folder / "out"), *definitions, *more]


def test_plan_estimates_tokens_and_price_without_sending(folder, cli, monkeypatch):
    with serving() as server:
        arguments = [a for a in command(folder, server) if a not in ("-o", str(folder / "out"))]
        found = cli("plan", *arguments[1:])
        assert "300 of 300 texts are not in the cache" in found.out and "$" in found.out
        assert server.requests == 0
        monkeypatch.setenv("MY_KEY", KEY)
        assert cli(*command(folder, server)).code == 0
        assert re.search(r" \d\.\d MB received from endpoints", cli("cache").out)
        before = server.requests
        assert "about 0 tokens, $0.00: 0 of 300 texts" in cli("plan", *arguments[1:]).out
        assert server.requests == before


def test_a_killed_run_requests_only_what_is_missing(folder, tmp_path):
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "MY_KEY": KEY, "TMPDIR": str(tmp_path / "tmp")}
    with serving(slow=0.02, key=KEY) as server:
        call = [sys.executable, "-m", "karat", *command(folder, server)]
        killed = subprocess.Popen(
            call, env=environment, cwd=folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 240
        while server.texts.total() < 60 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        deadline = time.monotonic() + 60
        while (before := server.requests) and time.monotonic() < deadline:
            time.sleep(0.5)  # the worker ends with its parent
            if server.requests == before:
                break
        assert 60 <= server.texts.total() < 300
        left = list(written(tmp_path / "tmp"))  # what a finished run would have removed
        assert left and not any(KEY.encode() in content for _, content in left)
        done = subprocess.run([*call, "--resume"], env=environment, cwd=folder, check=True,
                              capture_output=True, text=True)  # fmt: skip
        assert len(server.texts) == 300
        # answers on their way when the process was killed, at most one per connection, were lost
        assert server.texts.total() - 300 <= 2 * 5
        sent = server.texts.total()
        subprocess.run(call, env=environment, cwd=folder, check=True, capture_output=True)
        assert server.texts.total() == sent
    assert "sent to words-small" in done.stderr


def written(*folders):
    """Yield all bytes below some folders, with those of compressed files."""
    import gzip

    for folder in folders:
        for path in Path(folder).rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                yield path, content
                if path.suffix == ".gz":
                    yield path, gzip.decompress(content)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"answer": "nan"},
        {"answer": "html"},
        {"key": "another key"},
        {"script": [500] * 8},
        {"script": [200, 200] + [0] * 16},
    ],
    ids=["fine", "nan", "html", "401", "500", "dropped"],
)
def test_the_key_is_in_no_written_byte(folder, tmp_path, how):
    environment = {**os.environ, "MY_KEY": KEY, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    with serving(**{"key": KEY, **how}) as server:
        done = subprocess.run(
            [sys.executable, "-m", "karat", "--verbose", "--log-file", str(tmp_path / "log.txt"),
             *command(folder, server, "--workers", "0" if "script" in how else "2")],
            env=environment, cwd=folder, capture_output=True,
        )  # fmt: skip
        assert server.requests >= 1
    assert done.returncode == (1 if how else 0), done.stderr
    files = list(written(tmp_path))
    places = {path.name for path, _ in files}
    assert {"run.json", "log.txt", "model.yaml"} <= places
    assert b"MY_KEY" in next(content for path, content in files if path.name == "run.json")
    found = [path for path, content in files if KEY.encode() in content]
    assert found == [] and KEY.encode() not in done.stdout + done.stderr


def test_a_password_in_the_url_is_refused_and_not_logged(cli, tmp_path):
    log = tmp_path / "log.txt"
    for url in (f"https://me:{KEY}@example.com/v1#m", f"https://example.com/v1?key={KEY}#m"):
        found = cli("--log-file", log, "run", "sentences", "-m", url, "-o", tmp_path / "out")
        assert found.code == 2 and "api_key_env" in found.err
        assert KEY not in found.out + found.err + log.read_text()


def test_the_budget_of_a_command_keeps_what_is_there_and_says_so(folder, cli, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    with serving() as server:
        found = cli(*command(folder, server, "--budget", "0.01"))
        assert found.code == 1 and "--resume" in found.err and "$0.01" in found.err
        assert 0 < server.tokens * 1e-5 <= 0.01
        found = cli(*command(folder, server, "--resume", "--format", "json"))
        assert found.code == 0 and server.texts.total() == len(server.texts) == 300
    assert f'"tokens": {server.tokens}' in found.out
