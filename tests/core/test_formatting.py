"""Names, numbers and tables as text."""

from karat.core.formatting import plain, short


def test_names_are_sanitized_and_cut():
    assert plain("a\tb\n c") == "a b c"
    assert plain("x\x1b]0;title\x07") == "x\ufffd]0;title\ufffd"
    assert short("x" * 40) == "x" * 31 + "…"
    assert short("x" * 32) == "x" * 32
