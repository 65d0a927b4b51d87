"""What models print and warn, captured with the beginning and the end of long outputs."""

import sys
import warnings

from karat.execution.captured_output import LOG_LENGTH, OutputLog, captured_output


def test_output_and_warnings_are_captured(capsys):
    log = OutputLog()
    with captured_output(log):
        print("printed")
        print("told", file=sys.stderr)
        warnings.warn("warned", UserWarning, stacklevel=1)
        sys.stdout.close()
        print("still")
    assert log.getvalue() == "printed\ntold\nUserWarning: warned\nstill\n"
    assert capsys.readouterr().out == ""


def test_a_long_output_is_cut_in_the_middle():
    log = OutputLog()
    for letter in "abcdefgh":
        assert log.write(letter * LOG_LENGTH) == LOG_LENGTH
    text = log.getvalue()
    assert text.startswith("a" * LOG_LENGTH) and text.endswith("h" * LOG_LENGTH)
    assert "c" not in text.partition("characters omitted")[2] and len(text) < 4 * LOG_LENGTH
    assert f"{log.lost:,} characters omitted" in text and log.lost >= 5 * LOG_LENGTH
