//! `/teams/{team}/grabs/{grab}/thumbnail`: a small copy of the picture, for the gallery.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use grabd_domain::Fault;
use grabd_domain::grabs::State as Stands;
use grabd_engine::grabs;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderName, HeaderValue, StatusCode};

use crate::Web;
use crate::frame::Client;
use crate::problem::Problem;

/// A deleted picture is gone within a minute, and so is what a browser keeps of it.
const KEPT: &str = "private, max-age=60";

/// The file.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, grab)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.parts.take(client.0)?;
    let Some(at) = web.at_team(request.headers(), &team).await? else { return Err(Problem::signed_out()) };
    let (grab, caller) = at.find_grab(&web, &grab).await?;
    let none = || Problem::not_found("This capture has no picture.");
    let Stands::Done { image: Some(_), .. } = grab.state else { return Err(none()) };
    // A grab has one picture for good, or none any more.
    let tag = HeaderValue::try_from(format!("\"{}\"", grab.id)).expect("an id is visible ASCII");
    let mut response = match request.headers().get(IF_NONE_MATCH) == Some(&tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => match grabs::thumbnail(&web.core, caller, grab.id).await {
            Ok(file) => ([(CONTENT_TYPE, "image/jpeg")], file).into_response(),
            Err(Fault::NotFound { .. }) => return Err(none()),
            Err(fault) => return Err(fault.into()),
        },
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(KEPT));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    Ok(response)
}
