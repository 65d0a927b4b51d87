"""The place where earlier versions had the built-in corruptions."""

from karat.core.registry import corruptions
from karat.corruptions import noise


def test_every_corruption_is_there_under_the_name_of_its_function():
    ours = [name for name in corruptions if corruptions.origin(name).startswith("karat.")]
    for name in ours:
        function = corruptions.origin(name).rpartition(":")[2]
        assert getattr(noise, function) is corruptions.get(name)
