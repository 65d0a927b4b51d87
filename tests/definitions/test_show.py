import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karat.definitions.places import Node, SourceFile
from karat.definitions.show import show
from karat.definitions.strict_yaml import read_yaml

FILE = SourceFile("my.yaml")


def as_node(value):
    if isinstance(value, dict):
        value = {key: as_node(child) for key, child in value.items()}
    elif isinstance(value, list):
        value = [as_node(child) for child in value]
    return Node(value, FILE, 1, 1)


def same(a, b):
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


printable = st.text(st.characters(codec="utf-8"), max_size=100)
words = st.sampled_from(
    ["no", "1e5", "010", "true", "~", "-", "- a", "a: b", "a #b", "<<", "---", "@x", "1:30", "..."]
)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | printable | words
keys = st.text("abc", min_size=1, max_size=3) | st.integers(0, 9) | st.sampled_from(["no", "1"])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(keys, values, min_size=1, max_size=4))
def test_output_reads_back_the_same(tree):
    node, mistakes = read_yaml(show(as_node(tree), {}).encode(), FILE)
    assert mistakes == []
    assert same(node.plain(), tree)


def test_resolved_with_the_origin_of_every_line(load):
    definitions = load(
        kinds="""tasks:
  kind:
    abstract: true
    probe: trained
    split: {use: kfold, folds: 5}
    metrics: [auc, acc]
""",
        my="""tasks:
  churn:
    extends: kind
    dataset: {path: churn.csv, target: churned}
    split: {folds: 3}
    corruptions:
      noise:
        - 0.1
        - 0.4
    title: "no"
""",
    )
    assert definitions.show("tasks", "churn").splitlines() == [
        "probe: trained        # kinds.yaml:4",
        "split:                # my.yaml:5",
        "  use: kfold          # kinds.yaml:5",
        "  folds: 3            # my.yaml:5",
        "metrics: [auc, acc]   # kinds.yaml:6",
        "dataset:              # my.yaml:4",
        "  path: churn.csv     # my.yaml:4",
        "  target: churned     # my.yaml:4",
        "corruptions:          # my.yaml:6",
        "  noise:              # my.yaml:7",
        "    - 0.1             # my.yaml:8",
        "    - 0.4             # my.yaml:9",
        "title: no             # my.yaml:10",
        "missing: ignore       # default",
        "draws: 1              # default",
    ]
    assert (
        definitions.show("tasks", "kind").splitlines()[0] == "abstract: true        # kinds.yaml:3"
    )


def test_lists_of_mappings(load):
    definitions = load("""datasets:
  toy:
    sources:
      - folder: toy
      - {package: p, member: x.csv}
""")
    assert definitions.show("datasets", "toy").splitlines() == [
        "sources:            # my.yaml:3",
        "  - folder: toy     # my.yaml:4",
        "  - package: p      # my.yaml:5",
        "    member: x.csv   # my.yaml:5",
        "reader: table       # default",
        "modality: table     # default",
    ]


def test_a_long_line_does_not_widen_the_others(load):
    definitions = load(f"constraints: {{c: {{folds: 3, description: {'long ' * 20}}}}}")
    first, second = definitions.show("constraints", "c").splitlines()
    assert first == "folds: 3   # my.yaml:1"
    assert second.endswith("long   # my.yaml:1")
