//! What a running tool works with.

use std::sync::Arc;

use grabd_proto::called_as;
use grabd_proto::credential;
use grabd_proto::v1::TakeRequestRequest;
use grabd_proto::v1::access_service_client::AccessServiceClient;
use http::HeaderMap;
use sha2::{Digest, Sha256};

use super::super::state::Mcp;
use crate::rest::call::{self, CoreResponse};
use crate::rest::error::ApiError;

/// Context of a call: the server state, and the headers of the request.
pub(in super::super) struct ToolContext {
    pub(in super::super) mcp: Arc<Mcp>,
    pub(in super::super) headers: HeaderMap,
}

impl ToolContext {
    /// Counts a call that no other service counts. Returns the rate limit metadata of the core.
    pub(super) async fn take_request(&self) -> Result<HeaderMap, ApiError> {
        self.take_request_with(&self.headers).await
    }

    /// The same for a call that is refused here, with the message for its caller.
    pub(super) async fn refuse(&self, message: &str) -> Result<HeaderMap, ApiError> {
        let mut headers = self.headers.clone();
        called_as::set_refusal(&mut headers, message);
        self.take_request_with(&headers).await
    }

    async fn take_request_with(&self, headers: &HeaderMap) -> Result<HeaderMap, ApiError> {
        let mut core = AccessServiceClient::new(self.mcp.transport.clone());
        let sent = call::request(headers, TakeRequestRequest {}, call::QUERY_DEADLINE);
        let CoreResponse { message: _, metadata } =
            call::send(headers, call::QUERY_DEADLINE, core.take_request(sent)).await?;
        Ok(metadata)
    }

    /// The hash of the credential.
    pub(super) fn owner(&self) -> [u8; 32] {
        Sha256::digest(credential::bearer(&self.headers).unwrap_or_default()).into()
    }

    /// An internal error. The cause is only logged.
    pub(super) fn internal(&self, cause: &'static str) -> ApiError {
        ApiError::internal(cause, call::request_id(&self.headers))
    }
}
