//! Error responses of the endpoints that programs call.

use grabd_domain::oauth::ScopeError;

use super::form::RepeatedField;
use crate::error::Error;

/// An error response (RFC 6749 section 5.2, RFC 7591 section 3.2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointError {
    /// 400, 401 with a Basic challenge, 500, or 503.
    pub status: u16,
    /// The error code.
    pub error: &'static str,
    /// A sentence for the developer of the app.
    pub description: String,
}

impl EndpointError {
    pub(super) fn bad(error: &'static str, description: impl Into<String>) -> Self {
        Self { status: 400, error, description: description.into() }
    }

    pub(super) fn invalid_request(description: impl Into<String>) -> Self {
        Self::bad("invalid_request", description)
    }

    pub(super) fn invalid_grant(description: impl Into<String>) -> Self {
        Self::bad("invalid_grant", description)
    }

    pub(super) fn invalid_client(description: impl Into<String>) -> Self {
        Self { status: 401, error: "invalid_client", description: description.into() }
    }

    pub(super) fn unavailable(description: impl Into<String>) -> Self {
        Self { status: 503, error: "temporarily_unavailable", description: description.into() }
    }
}

impl<E> From<E> for EndpointError
where
    Error: From<E>,
{
    /// The endpoints are a boundary: the cause is logged here, and hidden from the client.
    #[track_caller]
    fn from(cause: E) -> Self {
        let description = Error::from(cause).into_fault().to_string();
        Self { status: 500, error: "server_error", description }
    }
}

impl From<RepeatedField> for EndpointError {
    fn from(field: RepeatedField) -> Self {
        Self::invalid_request(field.description())
    }
}

impl From<ScopeError> for EndpointError {
    fn from(error: ScopeError) -> Self {
        Self::bad("invalid_scope", error.to_string())
    }
}
