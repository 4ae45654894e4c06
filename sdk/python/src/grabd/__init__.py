"""Client library for grabd, the service that captures web pages as images."""

from pkgutil import extend_path

from ._async import AsyncGrabd, AsyncMonitors, AsyncProxies, AsyncSites, AsyncWebhooks
from ._core import VERSION as __version__
from ._core import BatchCapture, has_ended
from ._elements import CoveredBy, ElementsFile, PageElement
from ._errors import (
    ApiError,
    ConnectionFailedError,
    GrabdError,
    RequestTimeoutError,
    UnexpectedResponseError,
    WaitTimeoutError,
    WebhookVerificationError,
)
from ._generated import *  # noqa: F403
from ._generated import __all__ as _generated_names
from ._sync import Grabd, Monitors, Proxies, Sites, Webhooks
from ._webhooks import WebhookEvent, verify_webhook

# Modules that are generated from the gRPC contract are `grabd.v1`, and may be in another directory.
__path__ = extend_path(__path__, __name__)

__all__ = [
    "ApiError",
    "AsyncGrabd",
    "AsyncMonitors",
    "AsyncProxies",
    "AsyncSites",
    "AsyncWebhooks",
    "BatchCapture",
    "ConnectionFailedError",
    "CoveredBy",
    "ElementsFile",
    "Grabd",
    "GrabdError",
    "Monitors",
    "PageElement",
    "Proxies",
    "RequestTimeoutError",
    "Sites",
    "UnexpectedResponseError",
    "WaitTimeoutError",
    "WebhookEvent",
    "WebhookVerificationError",
    "Webhooks",
    "__version__",
    "has_ended",
    "verify_webhook",
]
__all__ += _generated_names
