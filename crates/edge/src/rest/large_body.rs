//! Reading of request bodies that may be large. Only callers with a valid credential may send those, and each account has a
//! part of the memory that they take.

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use grabd_limiters::{Turn, Turns};
use grabd_proto::v1::AuthenticateRequest;
use grabd_proto::v1::access_service_client::AccessServiceClient;
use http::HeaderMap;
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::body::{self, BodyError, BodyErrorKind, MAX_BODY_BYTES, MAX_LARGE_BODY_BYTES};
use super::call;
use super::error::ApiError;
use crate::transport::Transport;

/// Large bodies that are received at the same time, which bounds their memory to 64 MiB.
const MAX_RECEIVED: usize = 16;
/// Those of one account, in all of its teams.
const MAX_OF_ACCOUNT: usize = 2;

/// Receives large bodies.
pub(crate) struct LargeBodies {
    transport: Transport,
    /// By account, as the core names it.
    turns: Turns<String>,
}

/// Why a body was not received.
#[derive(Debug)]
pub(crate) enum LargeBodyError {
    /// It cannot be parsed.
    Body(BodyError),
    /// The core did not accept the credential, so the rest of the body was not received.
    Refused(ApiError),
}

impl From<BodyError> for LargeBodyError {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl LargeBodies {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { transport, turns: Turns::new(MAX_RECEIVED, MAX_OF_ACCOUNT) }
    }

    /// As [`body::read`], for bodies of up to [`MAX_LARGE_BODY_BYTES`]. What exceeds [`MAX_BODY_BYTES`] is received only after
    /// the credential was accepted, and while the account has not too many others.
    ///
    /// # Errors
    /// As [`body::read`], and when the credential is refused.
    pub(crate) async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, LargeBodyError> {
        let announced = body.size_hint().lower();
        if announced > MAX_LARGE_BODY_BYTES as u64 || body.is_end_stream() || body::is_json(headers).is_err() {
            return Ok(body::read(headers, body, MAX_LARGE_BODY_BYTES).await?);
        }
        match timeout(body::TIMEOUT, self.collect(headers, body, announced)).await {
            Ok(read) => read,
            Err(_) => Err(body::too_slow().into()),
        }
    }

    async fn collect(&self, headers: &HeaderMap, mut body: Body, announced: u64) -> Result<Bytes, LargeBodyError> {
        let mut turn = None;
        let mut whole = BytesMut::new();
        loop {
            let is_large = announced > MAX_BODY_BYTES as u64 || whole.len() > MAX_BODY_BYTES;
            if is_large && turn.is_none() {
                turn = Some(self.turn(headers).await.map_err(LargeBodyError::Refused)?);
            }
            let Some(frame) = body.frame().await else { return Ok(whole.freeze()) };
            let broken = |_| BodyError { seen: "a body that broke off".to_owned(), kind: BodyErrorKind::Missing };
            if let Ok(part) = frame.map_err(broken)?.into_data() {
                if whole.len().saturating_add(part.len()) > MAX_LARGE_BODY_BYTES {
                    let seen = format!("more bytes than the most, {MAX_LARGE_BODY_BYTES}");
                    return Err(BodyError { seen, kind: BodyErrorKind::TooLarge }.into());
                }
                whole.extend_from_slice(&part);
            }
        }
    }

    /// Authenticates the caller, and waits for the turn of its account.
    async fn turn(&self, headers: &HeaderMap) -> Result<Turn, ApiError> {
        let mut core = AccessServiceClient::new(self.transport.clone());
        let sent = call::request(headers, AuthenticateRequest { with_account: true }, call::QUERY_DEADLINE);
        let authenticated = call::send(headers, call::QUERY_DEADLINE, core.authenticate(sent)).await?;
        Ok(self.turns.take(&authenticated.message.account).await)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::{StreamExt, stream};
    use grabd_proto::reason::{self, DOMAIN};
    use grabd_proto::v1::access_service_server::{AccessService, AccessServiceServer};
    use grabd_proto::v1::{
        AuthenticateResponse, ErrorCode, TakeRequestRequest, TakeRequestResponse, access_service_server,
    };
    use http::HeaderValue;
    use http::header::{AUTHORIZATION, CONTENT_TYPE};
    use tonic::{Code, Request, Response, Status};
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;
    use crate::transport;

    /// A core whose credentials are the names of accounts.
    struct Core;

    #[tonic::async_trait]
    impl AccessService for Core {
        async fn authenticate(
            &self,
            request: Request<AuthenticateRequest>,
        ) -> Result<Response<AuthenticateResponse>, Status> {
            let credential = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
            let account = credential.unwrap_or_default().trim_start_matches("Bearer ").to_owned();
            match &*account {
                "stranger" => {
                    let details = ErrorDetails::with_error_info(reason::of(ErrorCode::Unauthorized), DOMAIN, []);
                    Err(Status::with_error_details(Code::Unauthenticated, "Missing or invalid Bearer token.", details))
                }
                _ => Ok(Response::new(AuthenticateResponse { live: false, account })),
            }
        }

        async fn take_request(&self, _: Request<TakeRequestRequest>) -> Result<Response<TakeRequestResponse>, Status> {
            Err(Status::unimplemented(access_service_server::SERVICE_NAME))
        }
    }

    fn bodies() -> LargeBodies {
        LargeBodies::new(transport::in_process(AccessServiceServer::new(Core)))
    }

    fn headers(credential: &str) -> HeaderMap {
        let authorization = HeaderValue::from_str(&format!("Bearer {credential}")).unwrap();
        let json = HeaderValue::from_static("application/json");
        HeaderMap::from_iter([(AUTHORIZATION, authorization), (CONTENT_TYPE, json)])
    }

    static PART: [u8; MAX_BODY_BYTES] = [b' '; MAX_BODY_BYTES];

    /// A body of unknown length, which does not end if `is_stuck`.
    fn parts(count: usize, is_stuck: bool) -> Body {
        let parts = stream::iter((0..count).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(&PART))));
        let end = stream::iter(is_stuck.then_some(())).then(|()| std::future::pending());
        Body::from_stream(parts.chain(end))
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_are_read_up_to_the_limit() {
        let bodies = bodies();
        let read = async |body| bodies.read(&headers("a"), body).await;
        assert_eq!(read(parts(64, false)).await.unwrap().len(), MAX_LARGE_BODY_BYTES);
        let too_large = |error: LargeBodyError| {
            matches!(error, LargeBodyError::Body(BodyError { kind: BodyErrorKind::TooLarge, .. }))
        };
        assert!(too_large(read(parts(65, false)).await.unwrap_err()));
        assert!(too_large(read(Body::from(vec![b' '; MAX_LARGE_BODY_BYTES + 1])).await.unwrap_err()));
        let mut text = headers("a");
        text.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        let error = bodies.read(&text, parts(1, false)).await.unwrap_err();
        assert!(matches!(error, LargeBodyError::Body(BodyError { kind: BodyErrorKind::NotJson, .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn credential_is_checked_before_a_body_becomes_large() {
        let bodies = bodies();
        let read = async |body| bodies.read(&headers("stranger"), body).await;
        assert_eq!(read(parts(1, false)).await.unwrap().len(), MAX_BODY_BYTES, "the create reports the credential");
        for body in [parts(2, true), Body::from(vec![b' '; MAX_BODY_BYTES + 1])] {
            let LargeBodyError::Refused(error) = read(body).await.unwrap_err() else { panic!("not refused") };
            assert_eq!(error.code, ErrorCode::Unauthorized);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn account_waits_for_its_own_large_bodies_only() {
        let bodies = Arc::new(bodies());
        let mut stuck: Vec<_> = (0..30)
            .map(|_| {
                let bodies = Arc::clone(&bodies);
                Box::pin(async move { bodies.read(&headers("slow"), parts(2, true)).await })
            })
            .collect();
        for read in &mut stuck {
            assert!(timeout(std::time::Duration::from_millis(1), read).await.is_err());
        }
        assert!(bodies.read(&headers("other"), parts(2, false)).await.is_ok());
        assert!(bodies.read(&headers("slow"), parts(1, false)).await.is_ok(), "a small body");
        let waited = bodies.read(&headers("slow"), parts(2, false)).await;
        assert!(matches!(waited, Err(LargeBodyError::Body(error)) if error == body::too_slow()));
    }
}
