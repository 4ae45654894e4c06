//! `GET /v1/shot`: opens a signed link, and redirects to its image.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_http::client_address;
use grabd_limiters::Window;
use grabd_proto::v1::link_service_client::LinkServiceClient;
use grabd_proto::v1::{ErrorCode, Grab, GrabStatus, OpenLinkRequest, OpenLinkResponse};
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION, REFERRER_POLICY, RETRY_AFTER,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::call::{self, CoreResponse};
use super::error::{ApiError, status_and_code};
use super::query::Query;
use super::state::Edge;
use super::{headers, limits, wire};

/// The most bytes of a query that are sent to the core, which reports shorter ones that are too long.
const MAX_QUERY_BYTES: usize = 64 << 10;
/// Poll interval in seconds that is suggested for a grab that is still open.
const RETRY_AFTER_S: u64 = 2;
/// Size of the picture of an error in pixels.
const PICTURE_SIZE: (u32, u32) = (640, 360);

/// Opens a link. The answer to an error is its envelope, or with `on_error=placeholder` a picture of it.
pub(super) async fn open(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let client = client_address(&request, &edge.trusted_proxies);
    let (parts, _) = request.into_parts();
    let wants_picture = Query::from_uri(&parts.uri).last("on_error") == Some("placeholder");
    let answered = match edge.link_addresses.take(client) {
        Ok(window) => match answer(&edge, &parts.headers, parts.uri.query().unwrap_or_default()).await {
            Ok(response) => Ok(with_limit(response, &window)),
            // Counted as other requests without a credential are.
            Err(error) if error.code == ErrorCode::Unauthorized => Err(error),
            Err(mut error) => {
                add_limit(&mut error.headers, &window);
                Err(error)
            }
        },
        Err(window) => Err(ApiError::rate_limit_exceeded(&window)),
    };
    match answered {
        Ok(response) => response,
        Err(error) if wants_picture => picture(error),
        Err(error) => error.into_response(),
    }
}

/// Reports the limit of the address, unless the core has counted the request for the key of the link.
fn add_limit(headers: &mut HeaderMap, window: &Window) {
    if !headers.contains_key(limits::RATE_LIMIT) {
        limits::write(window, headers);
    }
}

fn with_limit(mut response: Response, window: &Window) -> Response {
    add_limit(response.headers_mut(), window);
    response
}

async fn answer(edge: &Edge, headers: &HeaderMap, query: &str) -> Result<Response, ApiError> {
    if query.len() > MAX_QUERY_BYTES {
        return Err(ApiError::new(
            ErrorCode::BadRequest,
            format!("`query` must be at most {MAX_QUERY_BYTES} bytes long."),
        ));
    }
    let mut core = LinkServiceClient::new(edge.transport.clone());
    let sent = call::request(headers, OpenLinkRequest { query: query.to_owned() }, call::CREATE_DEADLINE);
    let CoreResponse { message, metadata } = call::send(headers, call::CREATE_DEADLINE, core.open_link(sent)).await?;
    let OpenLinkResponse { grab, fresh_s } = message;
    let incomplete = || ApiError::internal("the core returned an incomplete grab", call::request_id(headers));
    let grab = grab.ok_or_else(incomplete)?;
    match grab.status() {
        GrabStatus::Unspecified => Err(incomplete()),
        GrabStatus::Done => redirect(&grab, fresh_s, &metadata),
        GrabStatus::Failed => {
            let location = HeaderValue::from_str(&format!("/v1/grabs/{}", grab.id)).map_err(|_| incomplete())?;
            let mut failure = ApiError::from_grab(grab, location);
            // Whoever has only the link cannot read the grab.
            failure.headers.remove(LOCATION);
            limits::copy(&metadata, &mut failure.headers);
            Err(failure)
        }
        GrabStatus::Pending | GrabStatus::Processing => {
            let body = wire::grab(&grab).ok_or_else(incomplete)?;
            let mut response = headers::json_response(StatusCode::ACCEPTED, "no-store", &body, &metadata);
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S.into());
            Ok(response)
        }
    }
}

/// The redirect to the image, which may be stored for as long as the link allows.
fn redirect(grab: &Grab, fresh_s: i64, metadata: &HeaderMap) -> Result<Response, ApiError> {
    let deleted = || ApiError::new(ErrorCode::NotFound, "The image of this link was deleted.");
    let image = grab.image_url.as_deref().and_then(|url| HeaderValue::from_str(url).ok()).ok_or_else(deleted)?;
    let mut response = StatusCode::FOUND.into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, image);
    let values = [
        (ETAG, format!("\"{}\"", grab.id)),
        (CACHE_CONTROL, format!("public, max-age={fresh_s}")),
        (REFERRER_POLICY, "no-referrer".to_owned()),
        // Pages of all origins may show the image.
        (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin".to_owned()),
        (HeaderName::from_static("x-robots-tag"), "noindex".to_owned()),
    ];
    for (name, value) in values {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    limits::copy(metadata, headers);
    Ok(response)
}

/// A small picture of an error, with its status and headers.
fn picture(error: ApiError) -> Response {
    let (status, code) = status_and_code(error.code);
    let (width, height) = PICTURE_SIZE;
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\
         <title>{status}: {code}</title><rect width=\"100%\" height=\"100%\" fill=\"#eee\"/>\
         <g font-family=\"sans-serif\" text-anchor=\"middle\" fill=\"#555\">\
         <text x=\"50%\" y=\"48%\" font-size=\"56\">{number}</text>\
         <text x=\"50%\" y=\"62%\" font-size=\"24\">{code}</text></g></svg>",
        number = status.as_u16(),
    );
    let mut response = error.into_response();
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("image/svg+xml"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("cross-origin"));
    *response.body_mut() = Body::from(svg);
    response
}
