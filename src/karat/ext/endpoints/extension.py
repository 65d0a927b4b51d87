"""What this extension adds to Karat."""

from karat.core.extension import Extension

_HERE = "karat.ext.endpoints"
_ENCODER = f"{_HERE}.endpoint_encoder:EndpointEncoder"
_BY_ADDRESS = f"{_HERE}.endpoint_encoder:endpoint_model"
extension = Extension(
    "endpoints",
    {
        "account": {"endpoints": f"{_HERE}.endpoint_account:Account"},
        "bill": {"endpoints": f"{_HERE}.bills:bill_lines"},
        "model": {"endpoint": _ENCODER},
        "model_source": {"http": _BY_ADDRESS, "https": _BY_ADDRESS},
        "moved_module": {"karat.models.contrib.endpoints": f"{_HERE}.endpoint_encoder"},
        "name": {"models.EndpointEncoder": _ENCODER},
    },
)
