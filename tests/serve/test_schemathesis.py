"""Schemathesis asks the API whatever its description allows, and what it forbids."""

import shutil

import pytest

pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from karat.serve import app as module
from karat.serve.app import make_app
from karat.serve.endpoints import BASE, ENDPOINTS
from karat.serve.evaluations import Evaluations
from karat.serve.settings import Settings

TOKEN = "0123456789abcdef-token"
FEW = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def described(evaluated, tmp_path_factory):
    """The API of a folder whose queue does not work, so that nothing is run."""
    folder = shutil.copytree(evaluated, tmp_path_factory.mktemp("described") / "runs")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("start", "stop"):  # an app is opened for each request here
            patch.setattr(Evaluations, name, lambda self: None)
        patch.setattr(module, "PAUSE", 0.0)
        given = {
            "token": TOKEN,
            "max_upload": 100_000,
            "queue": 1000,
            "allow_hosts": ("testserver",),
        }
        made = make_app(Settings(folder, **given))
        yield schemathesis.openapi.from_asgi(f"{BASE}/openapi.json", made)


def cases():
    """Yield what is to be asked: what is described, and, where something can be wrong, that."""
    for endpoint in ENDPOINTS:
        yield endpoint, GenerationMode.POSITIVE
        if endpoint.parameters or endpoint.takes == "Order":
            yield endpoint, GenerationMode.NEGATIVE


@pytest.mark.parametrize(
    ("endpoint", "mode"),
    list(cases()),
    ids=lambda v: getattr(v, "value", None) or v.answer.__name__,
)
def test_answers_are_as_described(described, endpoint, mode):
    operation = described[BASE + endpoint.path][endpoint.method]
    # a name that nobody knows is a text like any other, and refused
    names = endpoint.token or 422 in endpoint.refuses

    @given(case=operation.as_strategy(generation_mode=mode))
    @FEW
    def asked(case):
        case.call_and_validate(
            headers={"Authorization": f"Bearer {TOKEN}"},
            excluded_checks=[positive_data_acceptance] if names else [],
        )

    asked()
