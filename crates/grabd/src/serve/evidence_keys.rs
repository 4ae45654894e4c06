//! `/.well-known/grabd-evidence-keys`: the public keys of all evidence that the service has signed, as a JSON Web Key Set.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use grabd_edge::{allow_methods, error_response};
use grabd_engine::evidence::keys::key_set;
use grabd_engine::{Core, Error};
use grabd_http::allow_any_origin;
use grabd_proto::v1::ErrorCode;

const PATH: &str = "/.well-known/grabd-evidence-keys";

/// For how long a copy may be used. A key signs as soon as it is made.
const CACHING: &str = "public, max-age=300";

const FAILED: &str = "The keys cannot be read. Try again later.";

pub(super) fn router(core: Core) -> Router {
    Router::new()
        .route(PATH, allow_methods("GET, HEAD, OPTIONS", get(keys)))
        .layer(middleware::from_fn(allow_any_origin))
        .with_state(core)
}

async fn keys(State(core): State<Core>) -> Response {
    match key_set(&core).await.map_err(Error::into_fault) {
        Ok(keys) => {
            ([(CONTENT_TYPE, "application/jwk-set+json"), (CACHE_CONTROL, CACHING)], keys.to_string()).into_response()
        }
        Err(_) => error_response(ErrorCode::InternalError, FAILED),
    }
}
