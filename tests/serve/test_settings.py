"""Which hosts a server answers to, and which tokens it takes."""

from pathlib import Path

import pytest

from karat.errors import DataError, DefinitionError
from karat.serve.settings import Settings, is_readable_by_others, read_token

ALLOWED = "localhost localhost:8765 LOCALHOST:1 127.0.0.1:8765 [::1]:8765".split()
REFUSED = "evil.example localhost.evil.example 127.0.0.1.evil.example 192.168.0.7".split()
REFUSED += ["", "localhost:port", "localhost/x", "user@localhost", "local host"]


@pytest.mark.parametrize("host", [*ALLOWED, *REFUSED])
def test_hosts_of_loopback(host):
    assert Settings(Path("runs")).allows_host(host) is (host in ALLOWED)


def test_a_host_can_be_allowed_and_all_addresses_are_where_all_are_listened_to():
    assert Settings(Path("runs"), allow_hosts=("Bench.example",)).allows_host("bench.example:443")
    everywhere = Settings(Path("runs"), host="0.0.0.0")
    assert everywhere.allows_host("192.168.0.7:8765")
    assert everywhere.allows_host("[2001:db8::1]")
    assert not everywhere.allows_host("evil.example")


def test_a_token_comes_from_a_file_or_from_the_environment(tmp_path):
    (tmp_path / "token").write_text("  abcdefghijklmnop\n")
    given = {"KARAT_TOKEN": "ponmlkjihgfedcba"}
    assert read_token(tmp_path / "token", given) == "abcdefghijklmnop"
    assert read_token(None, given) == "ponmlkjihgfedcba"
    assert read_token(None, {}) is None


@pytest.mark.parametrize("token", ["", "short", "a" * 15, "abcdefgh ijklmnop", "ä" * 20])
def test_a_token_that_could_be_guessed_or_not_be_sent_is_refused(token):
    with pytest.raises(DefinitionError, match="at least 16 characters"):
        read_token(None, {"KARAT_TOKEN": token})


def test_a_token_file_must_be_there_and_be_text(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        read_token(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff" * 20)
    with pytest.raises(DataError, match="cannot read"):
        read_token(tmp_path / "bytes")


def test_who_can_read_a_file(tmp_path):
    file = tmp_path / "token"
    file.touch(mode=0o600)
    assert not is_readable_by_others(file)
    file.chmod(0o644)
    assert is_readable_by_others(file)
