"""The error for an unknown model: common names of models, files, modules and hub names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from karat.core.registry import importable
from karat.errors import DefinitionError, did_you_mean, unknown

#: what a model of Karat is also called, in lower case and without "-", "_" and blanks
COMMON_NAMES = {
    "bagofwords": "tfidf",
    "baseline": "dummy",
    "bert": "minilm",
    "bm25okapi": "bm25",
    "bow": "tfidf",
    "decisiontreeclassifier": "DecisionTree",
    "dummyclassifier": "dummy",
    "dummyregressor": "dummy",
    "forest": "random-forest",
    "gbdt": "xgboost",
    "gbm": "xgboost",
    "gradientboosting": "xgboost",
    "labelencoder": "ordinal",
    "linear": "linear-regression",
    "logisticregression": "logistic-regression",
    "logistic": "logistic-regression",
    "logit": "logistic-regression",
    "logreg": "logistic-regression",
    "lr": "logistic-regression",
    "majority": "dummy",
    "mean": "dummy",
    "mlpclassifier": "mlp",
    "mlpregressor": "mlp",
    "neuralnetwork": "mlp",
    "nn": "mlp",
    "ohe": "onehot",
    "okapi": "bm25",
    "ols": "linear-regression",
    "onehotencoder": "onehot",
    "ordinalencoder": "ordinal",
    "pca": "onehot-pca",
    "randomforest": "random-forest",
    "randomforestclassifier": "random-forest",
    "randomforestregressor": "random-forest",
    "rf": "random-forest",
    "sbert": "minilm",
    "sentencetransformers": "minilm",
    "svc": "svm",
    "svr": "svm",
    "tablevectorizer": "skrub",
    "targetencoder": "target",
    "tfidfvectorizer": "tfidf",
    "tree": "DecisionTree",
    "universalsentenceencoder": "use-multilingual",
    "use": "use-multilingual",
    "word2vec": "word2vec-news",
    "xgb": "xgboost",
    "xgbclassifier": "xgboost",
    "xgbregressor": "xgboost",
}
LIGHTGBM = ("LightGBM", "lightgbm.LGBMClassifier")
CATBOOST = ("CatBoost", "catboost.CatBoostClassifier")
BOOSTING = ("histogram boosting", "sklearn.ensemble.HistGradientBoostingClassifier")
NEIGHBORS = ("nearest neighbors", "sklearn.neighbors.KNeighborsClassifier")
#: models of other libraries: what they are, and the class to use in a pipeline
ELSEWHERE = {
    "adaboost": ("AdaBoost", "sklearn.ensemble.AdaBoostClassifier"),
    "catboost": CATBOOST,
    "catboostclassifier": CATBOOST,
    "extratrees": ("extra trees", "sklearn.ensemble.ExtraTreesClassifier"),
    "hgb": BOOSTING,
    "histgradientboosting": BOOSTING,
    "histgradientboostingclassifier": BOOSTING,
    "kneighborsclassifier": NEIGHBORS,
    "knn": NEIGHBORS,
    "lasso": ("the lasso", "sklearn.linear_model.Lasso"),
    "lgb": LIGHTGBM,
    "lgbm": LIGHTGBM,
    "lgbmclassifier": LIGHTGBM,
    "lightgbm": LIGHTGBM,
    "naivebayes": ("naive Bayes", "sklearn.naive_bayes.GaussianNB"),
    "nb": ("naive Bayes", "sklearn.naive_bayes.GaussianNB"),
}


def no_such_model(name: str, names: Iterable[str]) -> DefinitionError:
    """Return the error for an unknown model, with what was probably meant.

    >>> print(no_such_model("rf", ["random-forest", "ridge"]))
    there is no model "rf". Did you mean "random-forest"?   (karat list models)
    >>> print(no_such_model("onehot,random", ["onehot", "random"]))
    there is no model "onehot,random"; repeat the option for each model: -m onehot -m random
    """
    several = [part.strip() for part in name.split(",")]
    if len(several) > 1 and all(several):
        options = " ".join(f"-m {part}" for part in several)
        return DefinitionError(
            f'there is no model "{name}"; repeat the option for each model: {options}'
        )
    plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    if plain in COMMON_NAMES:
        return DefinitionError(
            f'there is no model "{name}". Did you mean "{COMMON_NAMES[plain]}"?'
            "   (karat list models)"
        )
    model_names = list(names)
    if (
        hint := _of_library(plain)
        or _of_file(name)
        or _of_module(name)
        or _of_hub(name, model_names)
    ):
        return DefinitionError(f'there is no model "{name}"{hint}')
    return unknown("model", name, model_names)


def _of_library(plain: str) -> str:
    if plain not in ELSEWHERE:
        return ""
    what, path = ELSEWHERE[plain]
    return (
        f": {what} is not one of Karat's models. In a module of yours, write model = "
        f"make_pipeline(skrub.TableVectorizer(), {path}()), and use -m my_module:model."
    )


def _of_file(name: str) -> str:
    """Return a hint for the misspelled name of a file in the same folder."""
    path = Path(name)
    if not path.suffix or not path.parent.is_dir():
        return ""
    alike = [file.name for file in path.parent.glob(f"*{path.suffix[:2]}*")]
    hint = did_you_mean(path.name, alike)
    return f", and no file of this name.{hint}" if hint and not _class_of(name) else ""


def _class_of(name: str) -> str:
    """Return ``"package.module:Name"`` for ``"package.module.Name"``, if the module exists."""
    module, _, attribute = name.rpartition(".")
    return f"{module}:{attribute}" if attribute.isidentifier() and importable(module) else ""


def _of_module(name: str) -> str:
    """Return a hint for a class without a colon, or a module without a class."""
    if path := _class_of(name):
        return f'. Did you mean "{path}"?'
    if importable(name):
        return f'; {name} is a module: add the name of a class in it, "{name}:Name".'
    if "." in name and all(part.isidentifier() for part in name.split(".")):
        module, _, attribute = name.rpartition(".")
        return f'. A class in a module is written with a colon: "{module}:{attribute}".'
    return ""


def _of_hub(name: str, model_names: Sequence[str]) -> str:
    """Return a hint for the name of a model on the Hugging Face Hub."""
    last = name.rpartition("/")[2].lower()
    if "minilm-l6" in last:
        return '. Did you mean "minilm"?   (karat list models)'
    if name.count("/") == 1 and all(name.split("/")) and not did_you_mean(name, model_names):
        return f'. To load it from the Hugging Face Hub: "sentence-transformers:{name}".'
    return ""
