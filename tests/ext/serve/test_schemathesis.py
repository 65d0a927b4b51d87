"""Schemathesis sends what the description of the API allows, and what it forbids."""

import shutil

import pytest

pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from karat.ext.serve import guard, routes
from karat.ext.serve.server import ServerSettings
from karat.ext.serve.snapshots import Events
from karat.ext.serve.submissions import Evaluations

TOKEN = "0123456789abcdef-token"
FEW = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
MAX_UPLOAD = 100_000
#: the size above which a body is refused before it is read, whatever is in it
LARGEST = {"add_vectors": MAX_UPLOAD, "add_run": MAX_UPLOAD}
ORDERS = ("add_evaluation", "add_geval_evaluation")
LARGEST |= dict.fromkeys(ORDERS, guard.MAX_JSON)
#: endpoints that refuse unknown names, which the description cannot exclude
NAMED = {"get_board", "get_comparison", "get_predictions", "get_predictions_file"}
NAMED |= {"follow_events", "list_tasks", "get_geval_comparison"}


async def one_heartbeat(*_):
    """A stream of events that ends."""
    yield b": heartbeat\n\n"


@pytest.fixture(scope="module")
def described(evaluated, tmp_path_factory):
    """Return the API of a folder whose evaluations do not start."""
    folder = shutil.copytree(evaluated, tmp_path_factory.mktemp("described") / "runs")
    options = {"max_upload": MAX_UPLOAD, "queue": 1000, "allow_hosts": ("testserver",)}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("start", "stop"):
            patch.setattr(Evaluations, name, lambda self: None)
        patch.setattr(routes, "WRONG_TOKEN_DELAY", 0.0)
        patch.setattr(Events, "follow", one_heartbeat)
        app = routes.make_app(ServerSettings(folder, token=TOKEN, **options))
        yield schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)


def test_the_description_is_valid(described):
    described.validate()
    operations = [each for path in described.raw_schema["paths"].values() for each in path.values()]
    limited = {each["operationId"] for each in operations if "413" in each["responses"]}
    assert limited == LARGEST.keys()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("route", routes.api.routes, ids=lambda route: route.name)
def test_responses_are_as_described(described, route, mode):
    (method,) = route.methods
    operation = described[route.path][method]
    query = any(each.location == "query" for each in operation.iter_parameters())
    if mode is GenerationMode.NEGATIVE and not query and route.name not in ORDERS:
        pytest.skip("nothing in this request can be wrong")

    @given(case=operation.as_strategy(generation_mode=mode))
    @FEW
    def check(case):
        response = case.call(headers={"Authorization": f"Bearer {TOKEN}"})
        loose = method != "GET" or route.name in NAMED
        excluded = [positive_data_acceptance] if loose else []
        if response.status_code == 413:
            assert len(response.request.body) > LARGEST[route.name]
            excluded.append(negative_data_rejection)
        if response.status_code == 414:
            assert len(response.request.url) > guard.MAX_HEADER
            excluded.append(negative_data_rejection)
        if response.status_code == 421:
            assert response.request.headers["host"] != "testserver"
            excluded.append(negative_data_rejection)
        case.validate_response(response, excluded_checks=excluded)

    check()


def test_events_are_as_described(described, tools, evaluated):
    validator = pytest.importorskip("jsonschema_rs")
    responses = described.raw_schema["paths"]["/api/v1/events"]["get"]["responses"]
    assert {"200", "204"} <= responses.keys()
    (content,) = responses["200"]["content"].values()
    components = {"components": described.raw_schema["components"]}
    schema = {**content["schema"]["contentSchema"], **components}
    with tools.opened(evaluated, token=TOKEN) as client:
        progress = {"version": "", "progress": client.get("/api/v1/progress").json()}
    valid = [{"event": "progress", "data": progress}, {"event": "end", "data": {}}]
    wrong = [{"event": "progress", "data": {}}, {"event": "other", "data": {}}, {"event": "end"}]
    for events, is_valid in ((valid, True), (wrong, False)):
        assert all(validator.is_valid(schema, event) == is_valid for event in events)
