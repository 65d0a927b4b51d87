"""The prompts of saved models."""

import json

from karat.models.prompts import Prompts


def test_prompts_are_read_from_a_saved_model(tmp_path):
    assert Prompts.in_folder(tmp_path) == Prompts({}, None, False)
    config = {"prompts": {"passage": "p: ", "query": ""}, "default_prompt_name": "passage"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(config))
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "models.Router", "path": ""}]))
    prompts = Prompts.in_folder(tmp_path)
    assert prompts.routes and prompts.names == ["passage"]
    assert [prompts.of(role) for role in ("query", "document", "")] == ["", "p: ", "p: "]
    assert prompts.key("query") == " [query]" and prompts.key("") == "p: "
    assert prompts.of("query", {"query": "passage"}) == "p: "
