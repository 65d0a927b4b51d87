"""Help texts and invalid options of all commands."""

from __future__ import annotations

import re

import pytest

from karat.cli.app import karat as group


@pytest.mark.parametrize("verb", [None, *group.all_commands()])
def test_every_help_has_an_example(cli, verb):
    result = cli(*([verb] if verb else []), "--help")
    assert result.code == 0
    assert re.search(rf"Examples?:\n +karat {verb}" if verb else "karat run", result.out)


@pytest.mark.parametrize("verb", sorted(group.all_commands()))
def test_summaries_of_commands_fit_their_line(verb):
    summary = group.all_commands()[verb].get_short_help_str(
        80 - 6 - max(map(len, group.all_commands())) - 2
    )
    assert summary and not summary.endswith("...")


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["runn"], "runn"),
        (["run"], "SUITE"),
        (["run", "quickstart", "--only-fold", "x"], "integer"),
        (["run", "quickstart", "--sed", "1"], "--sed"),
        (["list", "model"], "'model'"),
        (["leaderboard"], "RUN"),
        (["lint"], "--list"),
    ],
)
def test_invalid_usage(cli, arguments, word):
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert word in err
