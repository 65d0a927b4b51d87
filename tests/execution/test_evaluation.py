"""``evaluate``: its arguments, its errors and what it returns."""

import dataclasses
import inspect
import logging
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import karat
from karat.config.catalog import Catalog
from karat.errors import DataError, DefinitionError, JobsFailed, KaratWarning
from karat.execution.arguments import run_settings
from karat.execution.evaluation import (
    find_models_and_suite,
    find_suite,
    make_options,
    plan_suite,
)
from karat.execution.session import Options
from karat.models.model import StatelessEncoder
from karat.models.tables.one_hot_table import OneHotTable
from karat.results.load import status
from karat.results.selection import pooled_sides


class Letters(StatelessEncoder):
    def transform(self, items):
        return np.array([[str(t).count("a"), str(t).count("b")] for t in items], dtype=float)


def lengths(items):
    return [[len(str(item)), str(item).count("a")] for item in items]


def test_names_classes_instances_functions_and_pipelines_are_models(words, tmp_path):
    models = {
        "name": "tfidf",
        "class": Letters,
        "instance": Letters(),
        "function": lengths,
        "pipeline": make_pipeline(TfidfVectorizer(analyzer="char")),
        "predictor": make_pipeline(TfidfVectorizer(analyzer="char"), LogisticRegression()),
    }
    runs = karat.evaluate(models, words(), output=tmp_path)
    assert [run.model for run in runs] == list(models)
    board = karat.leaderboard(runs)
    assert board["failed"].sum() == 0
    assert board["words"].notna().all()
    assert board.loc["class", "words"] == board.loc["instance", "words"]
    assert board.loc["predictor", "words"] == 1.0
    # each word occurs once, so only models of letters can predict
    assert board.loc["name", "words"] <= 0.5
    assert board["words"].drop("name").min() >= 0.9


def test_a_vector_file_and_vectors_in_memory_are_models(tmp_path):
    entities = list("abcdefgh")
    file = tmp_path / "known.txt"
    file.write_text("".join(f"{e} {i // 4} {i}\n" for i, e in enumerate(entities)))
    frame = pd.DataFrame({"e": entities, "y": ["x"] * 4 + ["z"] * 4})
    data = karat.Dataset.from_columns(frame, ["e"], "y", modality="entity", name="eight")
    task = karat.Task("eight", data, split={"use": "kfold", "folds": 2}, metrics=["acc"])
    vectors = {e: [i // 4, i] for i, e in enumerate(entities)}
    models = {"file": file, "text": str(file), "dict": vectors, "frame": pd.DataFrame(vectors).T}
    runs = karat.evaluate(models, task, output=tmp_path / "out")
    assert len({tuple(run.scores()["value"]) for run in runs}) == 1
    assert runs[0].scores()["value"].tolist() == [1.0, 1.0]


def test_a_suite_by_name_brings_its_models(tmp_path):
    suite = karat.suite("quickstart")
    found, chosen = find_models_and_suite(Catalog(), None, "quickstart")
    assert [m.name for m in found] == list(suite.models)
    assert [t.name for t in chosen] == [t.name for t in suite]


def test_one_error_lists_all_wrong_names():
    with pytest.raises(DefinitionError) as caught:
        karat.evaluate(["onehott", "skrb"], "quikstart")
    for message, name in zip(caught.value.messages, ("quikstart", "onehott", "skrb"), strict=True):
        assert f'"{name}"' in message


@pytest.mark.parametrize("models, tasks", [([], "diabetes"), ("onehot", [])])
def test_models_and_tasks_are_required(models, tasks):
    with pytest.raises(DefinitionError, match="no (model|task)"):
        karat.evaluate(models, [tasks] if tasks else [])


@pytest.mark.parametrize(
    "tasks, word",
    [
        (5, "int"),
        ([None], "NoneType"),
        (["diabetis"], '"diabetes"'),
        (karat.Dataset.from_table(pd.DataFrame({"a": [1, 2], "y": list("ab")}), "y"), "Dataset"),
    ],
    ids=["int", "None", "typo", "dataset"],
)
def test_other_objects_are_not_tasks(tasks, word):
    with pytest.raises(DefinitionError, match=word):
        find_suite(Catalog(), tasks)


# -- options --------------------------------------------------------------------------------


def test_options_have_defaults_and_short_forms(tmp_path):
    assert make_options({}) == Options()
    assert make_options({"output": str(tmp_path)}).output == tmp_path
    assert make_options({"only": "penguins"}).only == ["penguins"]
    assert make_options({"only_folds": 3}).only_folds == [3]
    assert make_options({"folds": 3}).folds == 3


@pytest.mark.parametrize(
    "given, word",
    [
        ({"workers": -1}, "workers"),
        ({"workers": "2"}, "'2'"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "1.5"),
        ({"seed": 2**32}, "4294967296"),
        ({"seed": True}, "True"),
        ({"seeds": 0}, "seeds must be an integer from 1 to 1000, got 0"),
        ({"seeds": 1001}, "1001"),
        ({"seeds": True}, "True"),
        ({"seeds": 2.5}, "2.5"),
        ({"seeds": "3"}, "'3'"),
        ({"max_rows": 1}, "max_rows"),
        ({"only_folds": [0, "1"]}, "folds of Only"),
        ({"folds": [0, 1]}, r"Only\(folds=\[0, 1\]\) runs these"),
        ({"folds": 0}, r"Only\(folds=0\) \(--only-fold 0\) runs this one"),
        ({"folds": 1}, r"Only\(folds=1\) \(--only-fold 1\) runs this one"),
        ({"folds": 2.5}, "an integer >= 2, got 2.5"),
        ({"folds": True}, "got True"),
        ({"inference": [0]}, "inference"),
        ({"engine": "ray"}, "'ray'"),
        ({"scheduler": "tcp://127.0.0.1:9"}, "scheduler .*--engine dask"),
        ({"sed": 1}, '"seed"'),
    ],
)
def test_wrong_options_are_an_error(given, word):
    with pytest.raises(DefinitionError, match=word):
        make_options(given)


def test_evaluate_documents_every_option_with_its_default():
    options = {field.name: field.default for field in dataclasses.fields(Options)}
    del options["command"]  # of the command line only
    parameters = inspect.signature(karat.evaluate).parameters
    text = inspect.getdoc(karat.evaluate)
    stated = run_settings(0, "results", ()) | {"seed": parameters["seed"].default}
    stated |= {"seeds": karat.Variants(None).seeds, "folds": None, "exit_on_error": False}
    assert stated == options | {"output": str(options["output"])}
    for name, parameter in parameters.items():
        assert f"\n{name} : " in text and parameter.kind is not parameter.VAR_KEYWORD


# -- data instead of tasks ------------------------------------------------------------------


def frame_of(rows=40):
    x = np.random.default_rng(2).normal(size=rows)
    return pd.DataFrame({"x": x, "z": x[::-1], "label": np.where(x > 0, "up", "down")})


def test_a_frame_arrays_and_a_file_give_equal_scores_whatever_its_name(tmp_path):
    frame = frame_of()
    for name in ("one", "two"):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    given = [
        (frame, "label"),
        (frame[["x", "z"]].to_numpy(), frame["label"]),
        (tmp_path / "one.csv", "label"),
        (str(tmp_path / "two.csv"), "label"),
    ]
    options = {"metrics": ["f1", "neg_log_loss"], "output": tmp_path / "results"}
    tables = [
        karat.evaluate({"m": LogisticRegression()}, rows, target, **options)[0].scores()
        for rows, target in given
    ]
    assert all(len(table) == 10 and table["value"].notna().all() for table in tables)
    assert len({tuple(table["value"].round(12)) for table in tables}) == 1


def test_other_targets_are_drawn_in_another_way(tmp_path):
    frame = frame_of()
    other = frame.assign(label=frame["label"].to_numpy()[::-1])
    rows = [
        planned([karat.Task("t", karat.Dataset.from_table(table, "label"))]).tasks[0].facts["split"]
        for table in (frame, frame.drop(columns="z"), other)
    ]
    assert rows[0]["rows"] == rows[1]["rows"] != rows[2]["rows"]


def test_a_regressor_makes_whole_numbers_a_regression(tmp_path):
    X, y = np.arange(12.0)[:, None], np.arange(12) % 3
    (run,) = karat.evaluate({"m": Ridge()}, X, y, cv=2, output=tmp_path)
    assert {"rmse"} <= set(run.scores()["metric"])
    (run,) = karat.evaluate({"m": LogisticRegression()}, X, y, cv=2, output=tmp_path)
    assert {"acc"} <= set(run.scores()["metric"])


@pytest.mark.parametrize(
    "models, tasks, more, word",
    [
        ("dummy", frame_of(), {}, "x, z, label"),
        ("dummy", ["adult"], {"target": "y"}, "target has no effect"),
        ("dummy", "adult", {"groups": "g", "sample_weight": "w"}, "groups and sample_weight have"),
        ("dummy", "quickstart", {"cv": KFold(3)}, '"quickstart" has folds of its own'),
        ("dummy", ["penguins"], {"cv": KFold(3)}, '"penguins"'),
        (
            "dummy",
            ["penguins", karat.Task("mine", "adult")],
            {"cv": 3},
            'named task "penguins".* two calls',
        ),
        ("dummy", "quickstart", {"cv": 1}, r"Only\(folds=1\)"),
        (karat.Variants("dummy", seeds=2), frame_of(), {"target": "label"}, "seeds=2 has no"),
        ("dummy", frame_of(), {"target": "label", "workers": karat.Machines(budget=1.0)}, "budget"),
        ("dummy", frame_of(), {"target": "label", "resume": "failed"}, 'True or "retry-failed"'),
        ("dummy", frame_of(), {"target": "label", "on_failure": "exit"}, '"warn", "raise", "stop"'),
        ("dummy", frame_of(), {"target": "label", "n_jobs": -1}, "n_jobs is now workers=-1"),
        ("dummy", "quickstart", {"folds": 3, "items": False}, "now cv=5(.|\n)*Output.items=False"),
        ("dummy", (frame_of(), frame_of()), {"target": "label", "cv": 3}, "train and a test part"),
        ("dummy", "no.csv", {"target": "y", "groups": [1]}, "name of a column"),
    ],
)
def test_an_option_without_effect_is_an_error(models, tasks, more, word, tmp_path):
    with pytest.raises(DefinitionError, match=word):
        karat.evaluate(models, tasks, output=tmp_path, **more)
    assert not list(tmp_path.iterdir())


def test_the_number_of_folds_of_named_tasks(tmp_path):
    (run,) = karat.evaluate("dummy", ["diabetes"], cv=2, output=tmp_path)
    assert sorted(run.scores()["fold"].unique()) == [0, 1]


# -- planning -------------------------------------------------------------------------------


def planned(tasks, **options):
    suite = karat.Suite("s", tuple(tasks))
    models = Catalog().models(OneHotTable())
    return plan_suite(models, suite, Catalog(), make_options(options))


def test_a_constraint_limits_folds_and_rows_and_only_selects_tasks(two_classes, line):
    assert [p.task.name for p in planned([two_classes(), line()], only=["l*"]).tasks] == ["line"]
    task = two_classes(split={"use": "kfold", "folds": 5})
    assert len(planned([task]).jobs) == 5
    assert len(planned([task], constraint="test").jobs) == 2
    assert len(planned([task], constraint="tiny", max_rows=10).tasks[0].data) == 10
    with pytest.raises(DefinitionError, match='"tiny"'):
        planned([task], constraint="tny")


def test_a_task_can_name_its_dataset(tmp_path):
    task = karat.Task("mine", "diabetes", metrics=["rmse"])
    assert len(planned([task]).tasks[0].data) == 442
    with pytest.raises(DefinitionError, match='"diabetes"'):
        planned([karat.Task("mine", "diabetis")])


@pytest.mark.parametrize("name", ["task", "fold", "result", "info", "status", "coverage", "notes"])
def test_a_metric_cannot_have_the_name_of_a_column(two_classes, clean_registry, name, tmp_path):
    karat.metric(name)(lambda predictions: 0.0)
    with pytest.raises(DefinitionError, match=f'"{name}"'):
        karat.evaluate(OneHotTable(), two_classes(metrics=[name, "acc"]), output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_registered_metric_is_scored(two_classes, clean_registry, tmp_path):
    @karat.metric("errors", higher_is_better=False, range=(0, 100))
    def errors(predictions):
        return float((predictions.predictions != predictions.target).sum())

    runs = karat.evaluate(["onehot", "dummy"], two_classes(metrics=["errors"]), output=tmp_path)
    board = karat.leaderboard(runs)
    assert board.index.tolist() == ["onehot", "dummy"]
    assert board.loc["dummy", "halves"] == 5.0
    assert board.attrs["higher_is_better"] == {"halves": False}


class FromFile(StatelessEncoder):
    """Reads a file that no parameter names."""

    depends_on = ("factor.txt",)

    def transform(self, items):
        return items.to_numpy(dtype=float) * float(Path("factor.txt").read_text())


def test_cached_vectors_follow_the_files_a_model_depends_on(two_classes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    largest = []
    for factor in ("1", "3", "1"):
        Path("factor.txt").write_text(factor)
        (run,) = karat.evaluate(FromFile(), two_classes(), output=tmp_path / "results")
        largest.append(run.records()[0]["observed"]["lengths"][-1])
    assert largest[1] == pytest.approx(3 * largest[0]) and largest[2] == largest[0]


class Broken:
    def fit(self, items, y=None):
        raise ValueError("out of order")

    transform = fit


def test_failed_jobs_are_a_warning_with_the_first_message_per_model(two_classes, tmp_path):
    models = {"good": "onehot", "bad": Broken(), "worse": Broken()}
    with pytest.warns(KaratWarning) as caught:
        runs = karat.evaluate(models, two_classes(), output=tmp_path)
    assert len(caught) == 1 and caught[0].filename == __file__
    lines = str(caught[0].message).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["bad", "worse"]
    for line, run in zip(lines, runs[1:], strict=True):
        assert "2 of 2 jobs" in line and "ValueError: out of order" in line
        assert str(run.log(run.records()[0])) in line


def test_failures_can_be_raised_and_keep_the_runs(two_classes, tmp_path):
    models = {"good": "onehot", "bad": Broken()}
    with pytest.raises(JobsFailed) as caught:
        karat.evaluate(models, two_classes(), output=tmp_path, on_failure="raise")
    assert [run.model for run in caught.value.runs] == ["good", "bad"]
    assert caught.value.runs[0].results()["status"].tolist() == ["ok", "ok"]
    assert isinstance(caught.value, karat.KaratError)


def test_a_given_model_that_ran_nowhere_is_a_warning(two_classes, tmp_path, recwarn):
    with pytest.warns(KaratWarning, match="tfidf"):
        karat.evaluate(["onehot", "tfidf"], two_classes(), output=tmp_path)
    with pytest.raises(JobsFailed):
        karat.evaluate("tfidf", two_classes(), output=tmp_path, on_failure="raise")


def test_finished_runs_give_no_warning(two_classes, tmp_path, recwarn):
    karat.evaluate("onehot", two_classes(), output=tmp_path, on_failure="raise")
    assert not [w for w in recwarn if issubclass(w.category, KaratWarning)]


def test_events_are_logged_and_nothing_is_printed(two_classes, tmp_path, caplog, capsys):
    models = {"random": "random", "broken": Broken()}
    with caplog.at_level(logging.DEBUG, logger="karat"):
        for _ in range(2):
            with pytest.warns(KaratWarning):
                karat.evaluate(models, two_classes(), output=tmp_path, resume=True)
    events = [(record.name, record.levelname) for record in caplog.records]
    assert ("karat.execution.plan", "DEBUG") in events
    assert events.count(("karat.execution.embedding_cache", "INFO")) == 1
    assert events.count(("karat.execution.job", "INFO")) == 4
    assert events.count(("karat.execution.session", "WARNING")) == 2  # the failed jobs
    resumed = [r.getMessage() for r in caplog.records if "resuming" in r.getMessage()]
    assert len(resumed) == 2
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_model_that_moves_when_it_is_imported_or_made_moves_no_results(
    two_classes, tmp_path, monkeypatch, workers
):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "moving_model.py").write_text(
        "import os\nfrom sklearn.preprocessing import StandardScaler\n"
        f"os.chdir({str(tmp_path / 'elsewhere')!r})\n\n"
        "class Moves(StandardScaler):\n    def __init__(self):\n        super().__init__()\n"
        f"        os.chdir({str(tmp_path / 'elsewhere')!r})\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    runs = karat.evaluate(
        ["moving_model:Moves", "onehot"], two_classes(), output="out", workers=workers
    )
    assert os.getcwd() == str(tmp_path)
    assert {r["status"] for run in runs for r in run.records()} == {"ok"}
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert not list((tmp_path / "elsewhere").iterdir())


# -- seeds ----------------------------------------------------------------------------------


class Seeded(StatelessEncoder):
    """Its vectors depend on its seed only, through a generator that the test can repeat."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def transform(self, items):
        return np.random.default_rng(self.random_state).normal(size=(len(items), 3))


@pytest.fixture
def noisy_runs(models, two_classes, tmp_path):
    """Run a model with a seed, and one without, on two folds with three seeds."""
    given = {"noisy": models.Noisy, "plain": models.Plain}
    return karat.evaluate(karat.Variants(given, seeds=3), two_classes(), output=tmp_path / "three")


def test_the_first_of_several_seeds_writes_what_a_run_without_writes(
    models, two_classes, noisy_runs, contents, tmp_path
):
    given = {"noisy": models.Noisy, "plain": models.Plain}
    assert [(run.model, run.about.get("replicate")) for run in noisy_runs] == [
        *(("noisy", None), ("noisy", 1), ("noisy", 2)),
        ("plain", None),
    ]
    once = karat.evaluate(karat.Variants(given, seeds=1), two_classes(), output=tmp_path / "one")
    assert [run.model for run in once] == ["noisy", "plain"]
    facts = ("stamp", "command", "karat")
    for run, other in zip(once, (noisy_runs[0], noisy_runs[3]), strict=True):
        assert {k: v for k, v in run.about.items() if k not in facts} == {
            k: v for k, v in other.about.items() if k not in facts
        }
    first = contents([noisy_runs[0], noisy_runs[3]])
    names = [place for place in contents(once) if place[1] != "run.json"]
    assert len(names) > 8
    assert {n: contents(once)[n] for n in names} == {n: first[n] for n in names}


def test_further_seeds_differ_in_the_seed_of_the_model_only(noisy_runs):
    first, second, third, _ = noisy_runs
    seeds = [[record["seed"] for record in run.records()] for run in noisy_runs[:3]]
    assert seeds == [[42, 43], [1_000_042, 1_000_043], [2_000_042, 2_000_043]]
    assert [record.get("replicate") for record in second.records()] == [1, 1]
    for fold in (0, 1):
        answers = [run.predictions("halves", fold) for run in (first, second, third)]
        assert all((each.key == answers[0].key).all() for each in answers)
        assert all((each.target == answers[0].target).all() for each in answers)
        columns = {tuple(each.probabilities[:, 0]) for each in answers}
        assert len(columns) == 3


def test_seeds_do_not_depend_on_the_number_of_workers(
    models, two_classes, noisy_runs, contents, tmp_path
):
    given = {"noisy": models.Noisy, "plain": models.Plain}
    workers = karat.evaluate(
        karat.Variants(given, seeds=3), two_classes(), output=tmp_path / "w", workers=2
    )
    for run, other in zip(noisy_runs, workers, strict=True):
        one, two = contents([run]), contents([other])
        assert {n: c for n, c in one.items() if n[1] != "run.json"} == {
            n: c for n, c in two.items() if n[1] != "run.json"
        }


def test_the_leaderboard_shows_the_mean_over_seeds(noisy_runs):
    tables = [pd.read_csv(run.folder / "scores" / "scores.csv") for run in noisy_runs[:3]]
    means = [table.loc[table["metric"] == "acc", "value"].mean() for table in tables]
    assert len(set(means)) > 1
    board = karat.leaderboard(noisy_runs)
    assert board.loc["noisy", "halves"] == pytest.approx(np.mean(means))
    spread = board.attrs["seed_spread"]
    assert spread == {"noisy": {"halves": pytest.approx(np.std(means, ddof=1))}}
    seconds = [record["seconds"] for run in noisy_runs[:3] for record in run.records()]
    assert board.loc["noisy", "seconds"] == pytest.approx(sum(seconds) / 3)
    assert board["failed"].tolist() == [0, 0]
    board = karat.leaderboard(noisy_runs, by="task")
    assert board.loc[("halves", "noisy"), "score"] == pytest.approx(np.mean(means))


def test_all_fits_of_a_fold_can_be_read(noisy_runs):
    sides = {side.model: side for side in pooled_sides(noisy_runs)}
    assert sides["noisy"].replicates("halves") == {0: [0, 1, 2], 1: [0, 1, 2]}
    assert sides["plain"].replicates("halves") == {0: [0], 1: [0]}
    side = sides["noisy"]
    scores = side.replicate_scores("halves", "auc")
    for fold in (0, 1):
        stored = [run.records()[fold]["views"][0]["scores"]["auc"] for run in noisy_runs[:3]]
        assert scores[fold] == dict(enumerate(stored))
        (mean,) = [a.scores["auc"] for (f, _), a in side_units(side).items() if f == fold]
        assert mean == pytest.approx(np.mean(stored))
        for number, run in enumerate(noisy_runs[:3]):
            one = side.run.predictions("halves", fold, replicate=number)
            assert (one.probabilities == run.predictions("halves", fold).probabilities).all()
        default = side.run.predictions("halves", fold).probabilities
        assert (default == noisy_runs[0].predictions("halves", fold).probabilities).all()
    with pytest.raises(DataError, match="replicate 3"):
        side.run.predictions("halves", 0, replicate=3)
    with pytest.raises(DataError, match="one fit"):
        noisy_runs[0].predictions("halves", 0, replicate=1)


def side_units(side):
    (units,) = side.answered["halves"].values()
    return units


def test_a_model_with_several_seeds_is_paired_with_one_that_is_fitted_once(noisy_runs):
    found = karat.compare(noisy_runs, "noisy", "plain")
    assert found.tasks["folds"].tolist() == [2]
    assert any("3 seeds" in note for note in found.notes)


def test_more_seeds_complete_a_run_and_fewer_lose_nothing(models, two_classes, tmp_path):
    def run(seeds):
        given = {"noisy": models.Noisy, "plain": models.Plain}
        return karat.evaluate(
            karat.Variants(given, seeds=seeds), two_classes(), output=tmp_path, resume=True
        )

    first = run(1)
    times = [record["utc"] for each in first for record in each.records()]
    more = run(3)
    assert {each.folder for each in first} < {each.folder for each in more}
    assert len(more) == 4 == len(list(tmp_path.iterdir()))
    again = run(2)
    assert [each.folder for each in again] == [more[0].folder, more[1].folder, more[3].folder]
    assert len(list(tmp_path.iterdir())) == 4
    assert [r["utc"] for each in first for r in each.records()] == times
    assert status(tmp_path)["model"].tolist() == [
        "noisy",
        "noisy (seed 2)",
        "noisy (seed 3)",
        "plain",
    ]


def test_a_fit_that_fails_leaves_the_mean_of_the_others(two_classes, tmp_path):
    class Fragile(Seeded):
        def fit(self, items, y=None):
            if self.random_state == 43:  # the first fit of fold 1
                raise ValueError("unlucky")
            return self

        requires_fit = True

    with pytest.warns(KaratWarning, match="unlucky"):
        runs = karat.evaluate(
            karat.Variants({"fragile": Fragile}, seeds=3), two_classes(), output=tmp_path
        )
    assert [run.model for run in runs] == ["fragile"] * 3
    board = karat.leaderboard(runs)
    assert board.loc["fragile", "failed"] == 1
    values = [
        [r["views"][0]["scores"]["acc"] if r["views"] else None for r in run.records()]
        for run in runs
    ]
    assert values[0][1] is None
    folds = [np.mean([v[0] for v in values]), np.mean([values[1][1], values[2][1]])]
    assert board.loc["fragile", "halves"] == pytest.approx(np.mean(folds))
    (side,) = pooled_sides(runs)
    assert side.replicates("halves") == {0: [0, 1, 2], 1: [0, 1]}
    chosen = side.run.predictions("halves", 1).probabilities
    assert (chosen == runs[1].predictions("halves", 1).probabilities).all()


def test_vectors_of_a_stateless_encoder_have_one_seed_for_each_fit(two_classes, tmp_path):
    runs = karat.evaluate(
        karat.Variants(["random", "onehot"], seeds=2), two_classes(), output=tmp_path, workers=1
    )
    assert [run.model for run in runs] == ["random", "random", "onehot"]
    answers = [run.predictions("halves", 0).probabilities for run in runs[:2]]
    assert (answers[0] != answers[1]).any()


def test_a_random_head_makes_an_encoder_use_a_seed(two_classes, line):
    tree = {"use": "trained", "head": "decision-tree"}
    tasks = [two_classes(), two_classes(name="tree", data="halves", probe=tree), line()]
    plan = planned(tasks, seeds=3)
    assert plan.seeded == {("OneHotTable", "tree")}
    jobs = [(model.replicate, task.task.name, fold) for model, task, fold in plan.jobs]
    first = [(0, name, fold) for name in ("halves", "tree", "line") for fold in (0, 1)]
    assert sorted(jobs) == sorted([*first, *((r, "tree", f) for r in (1, 2) for f in (0, 1))])
    assert len(planned(tasks, seeds=1).jobs) == 6


ROWS = [[1.0], [2.0]] * 9


@pytest.mark.parametrize(
    ("given", "more", "word"),
    [
        (("dummy", "t.csv"), {}, 'target="COLUMN"'),
        ((pd.DataFrame({"x": [1]}), [0], LogisticRegression()), {}, "model is the first argument"),
        (
            ("dummy", [[1.0], [2.0]] * 9, [0, 1] * 9),
            {"metrics": 0.5},
            "names, functions or scorers",
        ),
        (("dummy", [[1.0], [2.0]] * 9, [0, 1] * 9), {"metrics": "f1,acc"}, r"\['f1', 'acc'\]"),
        (([], [[1.0], [2.0]] * 9, [0, 1] * 9), {}, "give one, such as dummy"),
    ],
)
def test_what_newcomers_pass(tmp_path, monkeypatch, given, more, word):
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DefinitionError, match=word):
        karat.evaluate(*given, **more)


def test_only_whole_numbers_of_more_than_two_values_leave_the_kind_open(tmp_path):
    rows = [[float(i)] for i in range(30)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        karat.evaluate("dummy", rows, [0, 1] * 15, output=tmp_path)
    with pytest.warns(UserWarning, match=r"taken as classification.*astype\(str\)"):
        karat.evaluate("dummy", rows, [0, 1, 2] * 10, output=tmp_path)


def test_a_metric_that_fails_on_all_folds_is_told(tmp_path):
    rows, labels = [[float(i)] for i in range(30)], list("abc") * 10
    with pytest.warns(KaratWarning, match="the metric f1_score has no value on .*: ValueError"):
        karat.evaluate("dummy", rows, labels, metrics=["acc", f1_score], output=tmp_path)
