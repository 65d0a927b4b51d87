"""Finds out what a model takes that does not declare it, by asking it for a few rows of the data.

A suite may have tables, texts and entities, and most models are made for one of them. A model is
asked only what it can take; the rest is declined, with the error of the trial as the reason. Models
of Karat and those with ``takes`` are not tried, nor is anything if all data are of one modality:
there the jobs tell.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.core.dataset import PLURAL, Dataset
from karat.core.embeddings import embed, fit_embed
from karat.core.files import encodable, temporary_folder
from karat.errors import KaratError
from karat.execution.captured_output import OutputLog, captured_output
from karat.execution.object_store import ObjectStore
from karat.execution.plan import Plan, decline_reason, refuse_modalities
from karat.execution.resources import Limits
from karat.execution.solvers import PredictorSolver
from karat.execution.workers import WorkerDied, execute
from karat.models.adapters import FunctionEncoder, is_of_karat
from karat.models.model import Model

#: number of questions of a trial, and of the second one if it fails: some models need more rows
ROWS = (20, 200)
#: number of datasets of a modality on which a model must fail before it is declined
MOST_DATASETS = 3
#: one of so many rows is held out
HELD_OUT = 4
#: maximum length of an error in a reason
LONGEST = 160


@dataclass(frozen=True)
class TakesTrial:
    """A model and up to three datasets of a modality; all are keys of the object store."""

    model: str
    modality: str
    datasets: tuple[str, ...]
    seed: int
    limits: Limits | None = None


def decline_untaken(plan: Plan, workers: int = 0) -> Plan:
    """Return the plan without the tasks whose items the models do not take.

    Trials run as jobs do: under the limits of the tasks, and in worker processes if there are any.
    """
    refused: dict[int, dict[str, str]] = {}
    names: dict[str, int] = {}
    with temporary_folder() as folder:
        # models without an identity cannot be sent to other processes
        stores = {sendable: ObjectStore(folder / str(sendable)) for sendable in (False, True)}
        trials: dict[bool, list[TakesTrial]] = {False: [], True: []}
        for model in plan.models:
            if id(model.prototype) not in refused and _is_unknown(model):
                refused[id(model.prototype)] = {}
                names[model.name] = id(model.prototype)
                sendable = plan.identities[model.name] is not None
                trials[sendable].extend(_trials(plan, model, stores[sendable]))
        for sendable, store in stores.items():
            name, processes = f"{__name__}:reason_not_taken", workers if sendable else 0
            for trial, answer in (
                execute(trials[sendable], name, store, processes) if trials[sendable] else ()
            ):
                refused[names[trial.model]][trial.modality] = _text_of(answer)
    reasons = {
        model.name: _reasons(refused[id(model.prototype)])
        for model in plan.models
        if any(refused.get(id(model.prototype), {}).values())
    }
    return refuse_modalities(plan, reasons) if reasons else plan


def _is_unknown(model: Model) -> bool:
    """Return whether it is a model of a user that does not tell what it takes."""
    is_of_user = isinstance(model.prototype, FunctionEncoder) or not is_of_karat(model.prototype)
    return is_of_user and model.takes is None and not model.unavailable and model.role != "searcher"


def _trials(plan: Plan, model: Model, store: ObjectStore) -> Iterator[TakesTrial]:
    """Yield a trial of each modality that a model would be asked, if there are several."""
    datasets: dict[str, dict[str, Dataset]] = {}
    limits: dict[str, Limits | None] = {}
    for planned in plan.tasks:
        if planned.data is not None and not decline_reason(model, planned):
            datasets.setdefault(planned.data.modality, {})[planned.data.name] = planned.data
            limits.setdefault(planned.data.modality, plan.limits_of(planned.task))
    if len(datasets) < 2:
        return
    store.put(model.name, model)
    for modality, by_name in datasets.items():
        keys = []
        for name, data in list(by_name.items())[:MOST_DATASETS]:
            keys.append(store.put(f"{modality} {name}", _sample(data, max(ROWS), plan.seed)))
        # a worker takes the trials of a model one after the other
        yield TakesTrial(model.name, modality, tuple(keys), plan.seed, limits[modality])


def _sample(data: Dataset, rows: int, seed: int) -> Dataset:
    """Return a few questions; of data whose targets are items, a question about each of a few."""
    rng = np.random.default_rng([seed, zlib.crc32(f"trial {data.name}".encode())])
    if data.kind != "items":
        return data.sample(rows, rng)
    items = data.items.iloc[np.sort(rng.permutation(len(data.items))[:rows])]
    target = (np.arange(len(items)) % 2).astype(float)
    question = pd.DataFrame({"item": items.index})
    return Dataset(data.name, items, question, target, "regression", data.modality)


def reason_not_taken(trial: TakesTrial, store: ObjectStore) -> str:
    """Return why a model takes none of the datasets, or an empty string if it takes one."""
    model, reasons = store.get(trial.model), []
    for key in trial.datasets:
        whole = store.get(key)
        for rows in ROWS:
            data = _sample(whole, rows, trial.seed)
            error = _error_on(model, data, trial.seed)
            if not error:
                return ""
            if len(data) == len(whole):
                break
        reasons.append(f"on {len(data)} items of {data.name}, {error}")
    return reasons[0]


def _error_on(model: Model, data: Dataset, seed: int) -> str:
    """Return the error of a model that is fitted to some rows and asked for others, if any."""
    held = np.arange(len(data)) % HELD_OUT == 0
    train, test = data.take(np.flatnonzero(~held)), data.take(np.flatnonzero(held))
    try:
        with captured_output(OutputLog()):
            if model.role == "predictor":
                predictor = PredictorSolver(model, seed)
                predictor.fit(train)
                predictor.answer(test)
            else:
                encoder = model.fresh(seed, data.kind)
                width = fit_embed(encoder, train, model.name).matrix.shape[1]
                embed(encoder, test, model.name, width)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # includes sys.exit and panics of Rust libraries
        text = " ".join(str(error).split())
        message = text if isinstance(error, KaratError) else f"{type(error).__name__}: {text}"
        return encodable(message)[:LONGEST]
    return ""


def _text_of(answer: object) -> str:
    """Return the reason of a trial; a model that ends its process, or a limit, is one too."""
    if isinstance(answer, WorkerDied):
        return f"{answer.status}: {answer.cause}"[:LONGEST]
    if isinstance(answer, BaseException):
        raise answer
    return str(answer)


def _reasons(trials: Mapping[str, str]) -> dict[str, str]:
    """Return why each modality that failed is declined, and what to declare."""
    tried = sorted(trials, key=list(PLURAL).index)  # trials end in any order
    taken = [modality for modality in tried if not trials[modality]]
    refused = [modality for modality in tried if trials[modality]]
    declared = ", ".join(f'"{modality}"' for modality in taken) + "," * (len(taken) == 1)
    reasons = {}
    for modality in refused:
        if taken:
            what = f"it takes {_listed(taken)}, not {PLURAL[modality]}"
            advice = f"takes = ({declared}) declares it, without a trial"
        else:
            what = f"it takes no {_listed(refused, 'or')}"
            advice = f'if that is wrong, declare what it takes, as takes = ("{modality}",)'
        reasons[modality] = f"{what} ({trials[modality]}); {advice}"
    return reasons


def _listed(modalities: list[str], word: str = "and") -> str:
    names = [PLURAL[modality] for modality in modalities]
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
