"""What a plan would send to endpoints: texts that are not in the cache, and their price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from karat.core.embeddings import distinct_texts, role_order
from karat.core.formatting import money
from karat.core.registry import corruptions
from karat.core.services import service_of
from karat.corruptions.view import VECTORS, reason_not_applicable, views
from karat.execution.plan import Plan, PlannedTask
from karat.ext.endpoints.endpoint_account import SERVICE
from karat.ext.endpoints.endpoint_encoder import EndpointEncoder
from karat.models.searchers import stage_encoders


@dataclass(frozen=True)
class Bill:
    """What a model would send to its endpoint: texts that are not in the cache, and their price.

    ``views`` are the tokens of corrupted texts, whether they are in the cache or not.
    """

    model: str
    texts: int
    missing: int
    tokens: float
    views: float
    price: float | None


def estimate_bills(plan: Plan) -> list[Bill]:
    """Return the estimated bill of every model with an endpoint; nothing is sent.

    Texts that several models send to an endpoint are on the bill of the first one.
    """
    bills: list[Bill] = []
    billed: dict[str, set[tuple[str, str]]] = {}
    tasks_of: dict[int, dict[int, PlannedTask]] = {}
    for model, planned, _ in plan.jobs:
        tasks_of.setdefault(id(model), {})[id(planned)] = planned
    for model in plan.models:
        tasks = tasks_of.get(id(model), {}).values()
        for encoder in [model.prototype, *stage_encoders(model.prototype)] if tasks else ():
            if service_of(encoder) == SERVICE:
                earlier = billed.setdefault(encoder.family(), set())
                bills += _bill(model.name, encoder, tasks, earlier)
    return bills


def bill_lines(plan: Plan) -> Iterator[str]:
    """Yield a line about what each model would send to its endpoint."""
    for bill in estimate_bills(plan):
        cost = "" if bill.price is None else f", {money(bill.price)}"
        missing = f"{bill.missing:,} of {bill.texts:,} texts are not in the cache"
        views = f", and {bill.views:,.0f} of corrupted texts" if bill.views else ""
        yield f"{bill.model} would send about {bill.tokens:,.0f} tokens{views}{cost}: {missing}"


def _bill(
    name: str,
    encoder: EndpointEncoder,
    tasks: Iterable[PlannedTask],
    billed: set[tuple[str, str]],
) -> Iterator[Bill]:
    """Yield the bill of an endpoint, without texts that are ``billed``, to which it adds its own.

    Nothing is yielded if all texts were billed, as for the variants of an encoder.
    """
    task_texts = [
        (planned, role, texts)
        for planned in tasks
        for role, texts in _texts_by_role(planned, encoder)
    ]
    new: dict[str, list[str]] = {}
    for _, role, texts in task_texts:
        prompt = encoder.prompt_for(role)
        new.setdefault(role, []).extend(text for text in texts if (prompt, text) not in billed)
        billed.update((prompt, text) for text in texts)
    if not (count := sum(map(len, new.values()))):
        return
    estimates = [encoder.estimate(texts, role) for role, texts in new.items()]
    missing = sum(number for number, _ in estimates)
    tokens = sum(number for _, number in estimates)
    views = sum(
        _view_tokens(planned, encoder.estimate_all(texts, role))
        for planned, role, texts in task_texts
    )
    per_token = encoder.price_per_token
    price = None if per_token is None else (tokens + views) * per_token
    yield Bill(name, count, missing, tokens, views, price)


def _texts_by_role(
    planned: PlannedTask, encoder: EndpointEncoder
) -> Iterator[tuple[str, list[str]]]:
    """Yield the distinct texts of a task's items in each role in which they are encoded."""
    data = planned.data
    if data is None or data.items.ndim != 1:
        return
    order = role_order(encoder, data, np.arange(len(data.items)))
    for role in dict.fromkeys(order.roles):
        yield role, distinct_texts(data.items.iloc[order.places[order.roles == role]])[1]


def _view_tokens(planned: PlannedTask, tokens: float) -> float:
    """Return the tokens of the corrupted texts of all folds, of those of the whole data."""
    task, data = planned.task, planned.data
    if data is None or planned.tested is None:
        return 0.0
    changed = [
        view
        for view in views(task.corruptions, task.draws)
        if view.severity
        and not reason_not_applicable(view, data, "encoder")
        and any(
            VECTORS not in getattr(corruptions.get(name), "takes", ()) for name, _ in view.parts()
        )
    ]
    tested = len(planned.tested) / max(len(data), 1) * len(set(planned.repeats))
    return tokens * len(changed) * tested * len(planned.folds) / max(len(planned.repeats), 1)
