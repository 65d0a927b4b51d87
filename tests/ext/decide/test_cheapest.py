"""The cheapest model: costs, references, tests by hand, verdicts, and bad input."""

from __future__ import annotations

import html
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import karat
from karat.core.predictions import Predictions
from karat.errors import DataError, DefinitionError
from karat.ext.decide.cheapest import ACCEPTED, judge, pool_tasks
from karat.stats.paired_tests import MeanDifference

from ...score_data import score_table

#: differences of six tasks: mean 0, standard deviation √(10 / 5) thousandths
SMALL = [0.0, 0.002, -0.002, 0.001, -0.001, 0.0]
COST = {"big": 64.0, "small": 4.0, "tiny": 1.0}


def six_tasks(**differences):
    """Return scores on six tasks of "big" and of models with these differences to it."""
    scores = {
        f"t{i}": {"big": 0.8, **{name: 0.8 + own[i] for name, own in differences.items()}}
        for i in range(6)
    }
    return score_table(scores)


def row(found, model):
    return found.models.set_index("model").loc[model]


# -- the tests by hand ----------------------------------------------------------------------


def test_six_tasks_have_the_t_test_of_scipy():
    found = karat.cheapest(six_tasks(small=SMALL), {"big": 64, "small": 4}, reference="big")
    small = row(found, "small")
    lower = stats.ttest_1samp(SMALL, -0.01, alternative="greater").pvalue
    upper = stats.ttest_1samp(SMALL, 0.01, alternative="less").pvalue
    assert small["p_not_worse"] == pytest.approx(lower, rel=1e-6)
    assert small["p_equivalent"] == pytest.approx(max(lower, upper), rel=1e-6)
    ends = stats.t.interval(0.95, 5, 0, np.std(SMALL, ddof=1) / np.sqrt(6))
    assert (small["difference_low"], small["difference_high"]) == pytest.approx(ends)
    assert (small["relative_cost"], small["verdict"], small["tasks"]) == (1 / 16, "equivalent", 6)
    assert (found.model, found.outcome) == ("small", "found")
    assert "16 times cheaper" in found.sentence


def test_holm_corrects_for_the_cheaper_models_only():
    tiny = [value - 0.004 for value in SMALL]
    table = six_tasks(small=SMALL, tiny=tiny, dear=SMALL)
    found = karat.cheapest(table, {**COST, "dear": 99.0}, reference="big")
    one = stats.ttest_1samp(tiny, -0.01, alternative="greater").pvalue
    two = stats.ttest_1samp(SMALL, -0.01, alternative="greater").pvalue
    assert one > two
    assert row(found, "tiny")["p_not_worse"] == pytest.approx(one, rel=1e-6)
    assert row(found, "small")["p_not_worse"] == pytest.approx(2 * two, rel=1e-6)
    assert row(found, "dear")["verdict"] == "not cheaper" and found.model == "tiny"


def test_few_tasks_are_fixed_and_have_the_corrected_t_of_their_folds():
    apart = np.array([[0.01, -0.01, 0.02, 0.0, 0.01], [0.0, 0.01, -0.01, 0.0, 0.0]])
    scores = {f"t{i}": {"big": [0.8] * 5, "small": list(0.8 + own)} for i, own in enumerate(apart)}
    found = karat.cheapest(score_table(scores), {"big": 2, "small": 1}, reference="big")
    # Nadeau and Bengio: s² × (1/5 + 1/4); Welch and Satterthwaite over two tasks
    errors = apart.var(axis=1, ddof=1) * (1 / 5 + 1 / 4) / 4
    freedom = errors.sum() ** 2 / (errors**2 / 4).sum()
    ends = stats.t.interval(0.95, freedom, apart.mean(), np.sqrt(errors.sum()))
    small = row(found, "small")
    assert (small["difference_low"], small["difference_high"]) == pytest.approx(ends)
    assert small["test"] == "corrected t"


@pytest.fixture
def answered(write):
    """Write runs of right and wrong answers to the same items, with the accuracy as the score."""

    def make(items, **wrong):
        for place, (model, errors) in enumerate(wrong.items()):
            answers = ["no" if i in errors else "yes" for i in range(items)]
            stored = Predictions(
                answers, ["yes"] * items, answers="classes", truths="classes", classes=("no", "yes")
            )
            facts = {"answers": "classes", "truths": "classes", "classes": ["no", "yes"]}
            files = {**stored.files(), "metadata.json": json.dumps(facts)}
            sizes = {"questions": items, "train_questions": 0, "dimensions": 256 // 4**place}
            accuracy = {"t": [1 - len(errors) / items]}
            write(model, accuracy, files={("t", 0): files}, record=sizes)

    return make


def test_one_task_is_tested_on_its_items(answered, tmp_path):
    answered(1000, big=range(100), small=range(1, 102))
    found = karat.cheapest(tmp_path, cost="dimensions")
    small = row(found, "small")
    # one item is won and two are lost: mean -0.001; one more item may differ
    error = np.sqrt((3 / 1000 - 0.001**2) / 999 + 1e-6)
    z = stats.t.ppf(0.975, 999)
    half = 0.001 * (1 + (z**2 - 1) / 3) + z * error
    assert small["difference"] == pytest.approx(-0.001)
    assert small["difference_low"] == pytest.approx(-0.001 - half)
    assert (small["test"], small["verdict"]) == ("t over items", "equivalent")


@pytest.mark.parametrize(("items", "verdict"), [(100, "undecided"), (1000, "equivalent")])
def test_equal_answers_to_few_items_prove_nothing(answered, tmp_path, items, verdict):
    # with a loss of 0.01, all of 100 items agree in 37 % of cases, all of 1000 in 0.004 %
    answered(items, big=range(10), small=range(10))
    assert row(karat.cheapest(tmp_path, cost="dimensions"), "small")["verdict"] == verdict


@pytest.mark.parametrize("losses", range(6))
def test_few_losses_have_nearly_the_exact_poisson_test(losses):
    items = 10_000
    mean = MeanDifference(-losses / items, np.sqrt(losses) / items, items - 1, 1 / items)
    for margin in (0.0005, 0.001, 0.0015):
        exact = stats.poisson.cdf(losses, items * margin)
        if 0.001 < exact < 0.2:
            assert exact < mean.p_above(-margin) < exact * 1.35 + 0.01


def test_p_and_intervals_agree_and_are_mirrored():
    for step in (0.0, 0.001):
        found = MeanDifference(0.003, 0.002, 20, step)
        low, high = found.interval()
        assert found.p_above(low) == pytest.approx(0.025)
        assert found.p_below(high) == pytest.approx(0.025)
        turned = MeanDifference(-0.003, 0.002, 20, step)
        assert turned.p_below(0.01) == pytest.approx(found.p_above(-0.01))
        p = [found.p_above(bound) for bound in np.linspace(-0.02, 0.03, 50)]
        assert (np.diff(p) > 0).all()


def test_models_at_the_margin_are_rarely_accepted():
    rng = np.random.default_rng(0)
    errors = 0
    for _ in range(400):
        four = [
            pool_tasks([MeanDifference(m, 0.0, 9, 1e-6) for m in rng.normal(-0.01, 0.01, 8)])
            for _ in range(4)
        ]
        errors += judge(four, 0.01)["verdict"].isin(ACCEPTED).any()
    assert errors <= 30  # 5 % of 400, and more than two standard deviations


# -- verdicts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shift", "spread", "verdict", "outcome"),
    [
        (-0.02, 1, "worse", "none"),
        (-0.005, 10, "undecided", "undecided"),
        (-0.003, 1, "equivalent", "found"),
        (0.02, 1, "better", "found"),
        (0.008, 10, "not worse", "found"),
    ],
)
def test_verdicts(shift, spread, verdict, outcome):
    table = six_tasks(small=[shift + spread * value for value in SMALL])
    found = karat.cheapest(table, {"big": 64, "small": 4}, reference="big")
    assert (row(found, "small")["verdict"], found.outcome) == (verdict, outcome)
    assert "small" in found.sentence and "big" in found.sentence


def test_the_cheapest_is_chosen_and_the_next_one_is_named():
    tiny = [value - 0.02 for value in SMALL]
    found = karat.cheapest(six_tasks(mid=SMALL, small=SMALL, tiny=tiny), {**COST, "mid": 16.0})
    assert found.model == "small"
    low, high = (row(found, "tiny")[f"difference_{end}"] for end in ("low", "high"))
    assert f"tiny is not (-0.020, 95 % interval {low:.3f} to {high:.3f})" in found.sentence
    assert list(found.models["model"]) == ["tiny", "small", "mid", "big"]


def test_the_reference_may_be_the_cheapest():
    found = karat.cheapest(six_tasks(small=SMALL), {"big": 1, "small": 4}, reference="big")
    assert (found.model, found.outcome) == (None, "none")
    assert row(found, "small")["verdict"] == "not cheaper"


def test_a_model_that_failed_where_the_reference_did_not_is_not_accepted(write, tmp_path):
    same = {f"t{i}": [0.8, 0.7] for i in range(6)}
    write("big", same, record={"dimensions": 64})
    write("small", {**same, "t5": [0.8, None]}, record={"dimensions": 8})
    found = karat.cheapest(tmp_path, cost="dimensions", reference="big")
    assert row(found, "small")["verdict"] == "undecided" and "t5" in row(found, "small")["why"]


def test_metrics_without_an_upper_bound_count_as_shares():
    # 2 / 101 of the mean of both, and an own difference of 2
    scores = {f"t{i}": ("rmse", {"big": 100.0, "small": 102.0 + i / 10}) for i in range(6)}
    found = karat.cheapest(score_table(scores), {"big": 2, "small": 1}, reference="big")
    expected = -np.mean([(2 + i / 10) / (101 + i / 20) for i in range(6)])
    assert row(found, "small")["difference"] == pytest.approx(expected)
    assert row(found, "small")["verdict"] == "worse"


# -- costs and references -------------------------------------------------------------------


def test_costs_are_read_from_the_records(write, tmp_path):
    tasks = {f"t{i}": [0.8 + 0.01 * i, 0.7] for i in range(6)}
    sizes = {"dimensions": 100, "questions": 20, "train_questions": 80}
    times = {"predict_seconds": 2.0, "embed_seconds": 50.0}
    write("float", tasks, record={**sizes, **times, "price": 0.5, "tokens": 10})
    bits = {"precision": "binary", "predict_seconds": 1.0, "embed_seconds": None}
    write("bits", tasks, record={**sizes, **bits}, base="float")
    write("recorded", tasks, record={**sizes, "vector_bytes": 7})
    found = karat.cheapest(tmp_path, "bytes")
    assert found.models.set_index("model")["cost"].to_dict() == {
        "float": 400.0,
        "bits": 13.0,
        "recorded": 7.0,
    }
    found = karat.cheapest(tmp_path, "seconds", reference="float")
    assert row(found, "float")["cost"] == pytest.approx(2 / 20 + 50 / 100)
    assert row(found, "bits")["cost"] == pytest.approx(1 / 20)
    assert row(found, "recorded")["verdict"] == "no cost recorded"
    with pytest.raises(DataError, match="price"):
        karat.cheapest(tmp_path, "price")


def test_the_base_of_variants_is_the_reference_even_if_one_is_luckier(write, tmp_path):
    def tasks(more):
        return {f"t{i}": [0.8 + more, 0.7 + more] for i in range(6)}

    write("mini", tasks(0), record={"dimensions": 64})
    write("mini@8d", tasks(0.001), record={"dimensions": 8}, base="mini")
    found = karat.cheapest(tmp_path, "dimensions")
    assert found.reference == "mini" and set(found.models["base"]) == {"mini"}
    write("other", tasks(0.01), record={"dimensions": 32})
    found = karat.cheapest(tmp_path, "dimensions")
    assert found.reference == "other" and "2 models" in found.about_reference
    assert karat.cheapest(tmp_path, "dimensions", reference="mini@8d").reference == "mini@8d"


# -- output and bad input -------------------------------------------------------------------


def test_the_command_prints_the_same_in_every_format(write, tmp_path, cli):
    odd = "a b <script>x</script>"
    tasks = {f"t{i}": [0.8, 0.7] for i in range(6)}
    write("big", tasks, record={"dimensions": 64, "questions": 5000})
    write(odd, tasks, record={"dimensions": 8, "questions": 5000})
    command = ("cheapest", tmp_path, "--cost", "dimensions", "--reference", "big")
    found = karat.cheapest(tmp_path, "dimensions", reference="big")
    ended = cli(*command, "--format", "json")
    assert ended.code == 0 and json.loads(ended.out)["model"] == odd == found.model
    assert json.loads(ended.out)["sentence"] == found.sentence
    assert found.sentence in " ".join(cli(*command).out.split())
    assert cli(*command, "--format", "csv").out.splitlines()[1].startswith(odd)
    assert "<script>" not in cli(*command, "--format", "html").out + found._repr_html_()
    assert str(found).startswith(found.sentence)
    assert cli(*command, "-o", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "cheapest_models.csv").is_file()
    assert cli(*command, "--cost", "bytes", "--reference", odd).code == 1


@pytest.mark.parametrize(
    "options",
    [
        {"cost": "bits"},
        {"margin": 0},
        {"margin": -0.01},
        {"margin": float("nan")},
        {"reference": "bigg"},
        {"metric": "aucc"},
        {"cost": {"bigg": 3}},
        {"cost": {"big": -1, "small": 2}},
        {"pool": "all"},
    ],
)
def test_bad_options(options):
    given = {"cost": {"big": 2, "small": 1}, **options}
    with pytest.raises(DefinitionError):
        karat.cheapest(six_tasks(small=SMALL), **given)


def test_bad_runs(write, tmp_path, cli):
    with pytest.raises(DataError, match="two models"):
        karat.cheapest(six_tasks(), {"big": 1})
    write("one", {"t": [0.8, 0.7]}, record={"dimensions": 8})
    write("other", {"u": [0.8, 0.7]}, record={"dimensions": 4})
    with pytest.raises(DataError, match="--reference"):
        karat.cheapest(tmp_path, "dimensions")
    with pytest.raises(DataError, match="common"):
        karat.cheapest(tmp_path, "dimensions", reference="one")
    assert cli("cheapest", tmp_path, "--cost", "dimensions").code == 2
    assert cli("cheapest", tmp_path, "--cost", "money").code == 2
    assert cli("cheapest", tmp_path, "--cost", "price").code == 2


def test_runs_of_variants(tmp_path, cli):
    """Two of sixteen signs cannot tell sixty documents apart; terminal, JSON and page agree."""
    words = [f"w{i}" for i in range(16)]

    class Signs:
        def encode(self, texts):
            known = [text.split() for text in texts]
            return np.array([[1.0 if word in own else -1.0 for word in words] for own in known])

    rng = np.random.default_rng(0)
    chosen = [" ".join(rng.permutation(words)[:8]) for _ in range(60)]
    documents = {f"d{i}": text for i, text in enumerate(dict.fromkeys(chosen))}
    queries = {f"q{i}": " ".join(text.split()[::-1]) for i, text in enumerate(documents.values())}
    rows = [(f"q{i}", f"d{i}") for i in range(len(documents))]
    judged = pd.DataFrame(rows, columns=["query", "document"])
    data = karat.Dataset.from_corpus(documents, queries, judged, name="c")
    task = karat.Task("c", data, {"use": "nearest", "queries": "apart"}, "all", ["mrr"])
    variants = karat.Variants({"signs": Signs()}, [2], ["float32", "binary"])
    karat.evaluate(variants, task, output=karat.Output(tmp_path, cache=False))
    found = karat.cheapest(tmp_path, "bytes")
    costs = found.models.set_index("model")["cost"].to_dict()
    assert costs == {"signs": 64, "signs@2d": 8, "signs@2d-binary": 1}
    for model in ("signs@2d", "signs@2d-binary"):  # four vectors for all documents
        assert row(found, model)["verdict"] == "worse" and row(found, model)["difference"] < -0.5
    assert found.reference == "signs" and found.model is None
    ended = cli("cheapest", tmp_path, "--cost", "bytes", "--format", "json")
    assert json.loads(ended.out)["sentence"] == found.sentence
    assert found.sentence in " ".join(cli("cheapest", tmp_path, "--cost", "bytes").out.split())
    page = karat.report(tmp_path, tmp_path / "page.html").read_text()
    assert f"By bytes: {found.sentence}" in html.unescape(page)
