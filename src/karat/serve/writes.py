"""Writes: the endpoints that change something, for those who have the token."""

from __future__ import annotations

from karat.serve.asking import Asked
from karat.serve.orders import parse_order
from karat.serve.replies import Reply, json_reply
from karat.serve.service import Service

_FRESH = {"cache-control": "no-store"}


def add_vectors(service: Service, asked: Asked) -> Reply:
    """Keep an uploaded vector file."""
    made = service.uploads.add_vectors(asked.body, asked.query["name"])
    return json_reply(made, 201, _FRESH)


def list_vectors(service: Service, asked: Asked) -> Reply:
    """Return the uploaded vector files."""
    found = service.uploads.list_vectors()
    return json_reply({"total": len(found), "items": found})


def remove_vectors(service: Service, asked: Asked) -> Reply:
    """Forget an uploaded vector file."""
    service.uploads.remove_vectors(asked.path["name"])
    return json_reply({"removed": asked.path["name"]}, headers=_FRESH)


def add_run(service: Service, asked: Asked) -> Reply:
    """Unpack an uploaded run folder and put it beside the others."""
    made = service.uploads.add_run(asked.body, asked.query["name"])
    service.state.forget()
    return json_reply({"id": made}, 201, {**_FRESH, "location": f"/api/v1/runs/{made}"})


def add_evaluation(service: Service, asked: Asked) -> Reply:
    """Queue an evaluation."""
    order = parse_order(asked.body)
    service.names.check(order, service.uploads)
    made = service.evaluations.submit(order)
    headers = {**_FRESH, "location": f"/api/v1/evaluations/{made.id}"}
    return json_reply(service.evaluations.told(made), 202, headers)


def list_evaluations(service: Service, asked: Asked) -> Reply:
    """Return all evaluations, the newest first."""
    found = service.evaluations.all()
    start, limit = asked.query["offset"], asked.query["limit"] or 50
    part = [service.evaluations.told(each) for each in found[start : start + limit]]
    return json_reply({"total": len(found), "offset": start, "items": part})


def get_evaluation(service: Service, asked: Asked) -> Reply:
    """Return one evaluation."""
    found = service.evaluations.get(asked.path["id"])
    return json_reply(service.evaluations.told(found))


def cancel_evaluation(service: Service, asked: Asked) -> Reply:
    """Take an evaluation out of the queue, or end it."""
    found = service.evaluations.cancel(asked.path["id"])
    return json_reply(service.evaluations.told(found), 202, _FRESH)


def resume_evaluation(service: Service, asked: Asked) -> Reply:
    """Queue an evaluation again."""
    found = service.evaluations.resume(asked.path["id"])
    return json_reply(service.evaluations.told(found), 202, _FRESH)


def names(service: Service, asked: Asked) -> Reply:
    """Return the names that are defined here."""
    kinds = ("models", "suites", "tasks", "constraints")
    return json_reply({kind: service.names.of(kind) for kind in kinds})
