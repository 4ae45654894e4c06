"""The errors of the library."""

from __future__ import annotations

import re


class GrabdError(Exception):
    """Base class of every error of this library, except wrong arguments (`TypeError`, `ValueError`)."""


class ApiError(GrabdError):
    """The service responded with an error. There is a subclass for each code."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        cause: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        location: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status."""
        self.code = code
        """Machine-readable code. Later versions of the service may add codes."""
        self.cause = cause
        """Whose fault it is: `request`, `target` (the captured site) or `service`. None if the service does not say it."""
        self.request_id = request_id
        """`X-Request-Id` of the response. Quote it when you ask for help."""
        self.retry_after = retry_after
        """Seconds to wait before a retry, if the service named them."""
        found = re.search(r"/grabs/([^/?#]+)$", location or "")
        self.grab_id = found[1] if found else None
        """Id of the grab that failed. None if the request created none."""
        self._replayed = False
        """Whether the service repeated it from an earlier request with the same Idempotency-Key, and would again."""


class ConnectionFailedError(GrabdError):
    """No response arrived: no connection, or it broke. `__cause__` has the reason."""


class RequestTimeoutError(ConnectionFailedError):
    """No complete response arrived in time."""


class WaitTimeoutError(GrabdError):
    """A grab or a site job did not end in the time that the caller gave. It goes on, and can be waited for again."""

    def __init__(self, message: str, grab_id: str) -> None:
        super().__init__(message)
        self.grab_id = grab_id
        """Id of the grab or the site job."""


class UnexpectedResponseError(GrabdError):
    """A response is not what the REST API promises, for example because a proxy sent it."""

    def __init__(
        self, message: str, *, status: int, request_id: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status."""
        self.request_id = request_id
        """`X-Request-Id` of the response."""
        self.retry_after = retry_after
        """Seconds to wait before a retry, if the response named them."""


class WebhookVerificationError(GrabdError):
    """A webhook message is not from the service, was changed, or is too old. Do not process it."""
