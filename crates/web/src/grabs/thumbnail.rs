//! `/teams/{team}/grabs/{grab}/thumbnail`: the thumbnail of the image, for the gallery.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use grabd_domain::Fault;
use grabd_domain::grabs::State as GrabState;
use grabd_engine::{Error, grabs};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::extract::TeamPart;
use crate::problem::Problem;
use crate::state::Web;

/// Deleted images disappear within a minute, so browsers may cache a thumbnail for as long.
const CACHING: &str = "private, max-age=60";

/// Sends the thumbnail.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPart(at): TeamPart,
    Path((_, grab)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (grab, caller) = at.find_grab(&web, &grab).await?;
    let none = || Problem::not_found("This capture has no image.");
    let GrabState::Done { image: Some(_), .. } = grab.state else { return Err(none()) };
    // The image of a grab never changes; it can only be deleted.
    let tag = HeaderValue::try_from(format!("\"{}\"", grab.id)).expect("an id is visible ASCII");
    let mut response = match headers.get(IF_NONE_MATCH) == Some(&tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => match grabs::thumbnail(&web.core, caller, grab.id).await.map_err(Error::into_fault) {
            Ok(file) => ([(CONTENT_TYPE, "image/jpeg")], file).into_response(),
            Err(Fault::NotFound { .. }) => return Err(none()),
            Err(fault) => return Err(fault.into()),
        },
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(CACHING));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    Ok(response)
}
