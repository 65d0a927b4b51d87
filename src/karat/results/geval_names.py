"""GEval's names of gold standards, models and metrics in Karat's terms; its comparison table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

#: GEval's task and gold standard, by Karat dataset
GOLD = {
    **{
        data + end: (task, name)
        for task, end in (("Classification", ""), ("Regression", "_rating"))
        for data, name in (
            ("cities", "Cities"),
            ("movies", "MetacriticMovies"),
            ("albums", "MetacriticAlbums"),
            ("aaup", "AAUP"),
            ("forbes", "Forbes"),
        )
    },
    "cities_and_countries": ("Clustering", "citiesAndCountries_cluster"),
    "cities2000_and_countries": ("Clustering", "cities2000AndCountries_cluster"),
    "five_domains": ("Clustering", "citiesMoviesAlbumsCompaniesUni_cluster"),
    "teams": ("Clustering", "teams_cluster"),
    "lp50": ("DocumentSimilarity", "LP50"),
    "kore": ("EntityRelatedness", "KORE"),
    "capital_country": ("SemanticAnalogies", "capital_country_entities"),
    "all_capital_country": ("SemanticAnalogies", "all_capital_country_entities"),
    "currency": ("SemanticAnalogies", "currency_entities"),
    "city_state": ("SemanticAnalogies", "city_state_entities"),
}
#: GEval's model and configuration, by the suffix of Karat's task names
SETUPS = {
    "Classification": {
        "nb": ("NB", ""),
        "knn3": ("KNN", "K=3"),
        "tree": ("EntropyTree", ""),
        **{
            f"svm-{cost}": ("SVM", f"C={cost}")
            for cost in ("0.001", "0.01", "0.1", "1.0", "10.0", "100", "1000")
        },
        "choice": ("NestedChoice", "NB,KNN,SVM"),
    },
    "Regression": {
        "linear": ("LR", ""),
        "knn3": ("KNN", "K=3"),
        "model-tree": ("ModelTree", ""),
        "choice": ("NestedChoice", "LR,Ridge,KNN"),
    },
    "Clustering": {
        "kmeans": ("KMeans", ""),
        "ward": ("Ward hierarchical clustering", "metric=euclidean"),
        "agglomerative": ("Agglomerative clustering", "metric=cosine"),
        "dbscan": ("DBSCAN", "metric=cosine"),
    },
    "DocumentSimilarity": {"": ("", "without_weights"), "weighted": ("", "with_weights")},
    "EntityRelatedness": {"": ("", "")},
    "SemanticAnalogies": {"": ("", "top_k=2")},
}
#: GEval's metrics by Karat's; ``{k}`` is the number in the configuration ``top_k=...``
METRICS = {
    "Classification": {"acc": "accuracy"},
    "Regression": {"rmse": "root_mean_squared_error"},
    "Clustering": {
        "ari": "adjusted_rand_index",
        "ami": "adjusted_mutual_info_score",
        "homogeneity": "homogeneity_score",
        "completeness": "completeness_score",
        "v_measure": "v_measure_score",
        "nmi": "normalized_mutual_info_score",
        "clustering_accuracy": "clustering_accuracy",
        "fowlkes_mallows": "fowlkes_mallows_score",
    },
    "DocumentSimilarity": {
        "pearson": "pearson_score",
        "spearman": "spearman_score",
        "harmonic": "harmonic_mean",
    },
    "EntityRelatedness": {
        "kendall_covered": "kendalltau_correlation",
        "kendall": "kendalltau_correlation_penalised",
    },
    "SemanticAnalogies": {
        "hits@{k}_covered": "accuracy",
        "hits@{k}": "accuracy_over_all",
        "mrr_covered": "mean_reciprocal_rank",
        "mrr": "mean_reciprocal_rank_over_all",
    },
}
COMPARED = (
    *("test_name", "task_name", "gold_standard_file", "coverage", "model"),
    *("model_configuration", "metric", "score_value"),
)
TOP_K = "top_k="
#: the columns two scores must agree in to be compared
RANKED = ("task_name", "gold_standard_file", "model", "model_configuration", "metric")
#: metrics where lower is better
LOWER = ("root_mean_squared_error",)


@dataclass(frozen=True)
class Trial:
    """A model with a configuration on a gold standard: the subject of a row in GEval's files."""

    task: str
    gold: str
    model: str = ""
    configuration: str = ""

    @property
    def name(self) -> str:
        """The task name in the suite ``geval``, or else all fields, as in ``karat geval``.

        >>> Trial("Classification", "Cities", "NB").name, Trial("Regression", "Cities", "M5").name
        ('cities-nb', 'Regression Cities M5')
        """
        data, ending = self.dataset, self._ending()
        if data and ending is not None:
            return "-".join(filter(None, (data.replace("_", "-"), ending)))
        return " ".join(filter(None, (self.task, self.gold, self.model, self.configuration)))

    @property
    def dataset(self) -> str:
        """Karat's dataset, or an empty string."""
        pair = (self.task, self.gold)
        return next((data for data, names in GOLD.items() if names == pair), "")

    def _ending(self) -> str | None:
        setups = SETUPS.get(self.task, {})
        pair = (self.model, self.configuration)
        return next((ending for ending, names in setups.items() if names == pair), None)

    @property
    def metrics(self) -> dict[str, str]:
        """GEval's metrics by Karat's."""
        k = self.configuration.removeprefix(TOP_K) or "2"
        return {ours.format(k=k): theirs for ours, theirs in METRICS[self.task].items()}

    @property
    def file(self) -> str:
        """The name of GEval's result file; analogies share one."""
        middle = "" if self.task == "SemanticAnalogies" else f"_{self.gold}"
        return f"{self.task[0].lower()}{self.task[1:]}{middle}_results.csv"


def trial_of(name: str, dataset: str, kind: str) -> Trial | None:
    """Return the GEval trial that corresponds to a Karat task, or None.

    >>> trial_of("cities-svm-0.1", "cities", "classification")
    Trial(task='Classification', gold='Cities', model='SVM', configuration='C=0.1')
    >>> trial_of("Clustering teams_cluster KMeans", "teams", "Clustering").model
    'KMeans'
    >>> trial_of("cities-mine", "cities", "classification") is None
    True
    """
    if kind in METRICS and name.startswith(f"{kind} "):
        gold, *rest = name.removeprefix(f"{kind} ").split(" ")
        configured = bool(rest) and any(sign in rest[-1] for sign in ("=", ",", "_weights"))
        configuration = rest.pop() if configured else ""
        return Trial(kind, gold, " ".join(rest), configuration)
    if dataset not in GOLD:
        return None
    task, gold = GOLD[dataset]
    stem = dataset.replace("_", "-")
    ending = "" if name == stem else name.removeprefix(f"{stem}-")
    if ending not in SETUPS[task] or (ending and not name.startswith(f"{stem}-")):
        return None
    return Trial(task, gold, *SETUPS[task][ending])


def ranking(values: pd.DataFrame, run_id: str, first: int = 1) -> pd.DataFrame:
    """Return the ranks of a run: the best has the rank ``first``, ties share the better rank.

    A missing score has the rank -1. ``absolute_total`` counts the scores compared,
    ``relative_total`` the distinct ones.
    """
    rows = []
    for key, group in values.groupby(list(RANKED), sort=False, dropna=False):
        is_own = (group["test_name"] == run_id).to_numpy()
        if not is_own.any():
            continue
        scores = group["score_value"].to_numpy(dtype=float)
        own, present = scores[is_own][0], scores[~np.isnan(scores)]
        better = present < own if key[-1] in LOWER else present > own
        coverage = group["coverage"].to_numpy(dtype=float)
        rows.append(
            {
                **dict(zip(RANKED, key, strict=True)),
                "ranking": -1 if np.isnan(own) else first + int(better.sum()),
                "absolute_total": len(present),
                "relative_total": len(np.unique(present)),
                "coverage": coverage[is_own][0],
                "lowest_coverage": coverage.min(),
                "highest_coverage": coverage.max(),
            }
        )
    return pd.DataFrame(rows)


def comparison_text(values: pd.DataFrame) -> str:
    """Return the comparison table separated by blanks, as GEval stores it."""
    return values[list(COMPARED)].to_csv(sep=" ", index=False, lineterminator="\n")
