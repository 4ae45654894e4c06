//! `GET /v1/shot`: opens a signed link, and redirects to its image.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_http::client_address;
use grabd_limiters::Window;
use grabd_options::{CaptureOption, Kind, TABLE};
use grabd_proto::v1::link_service_client::LinkServiceClient;
use grabd_proto::v1::{ErrorCode, Grab, GrabStatus, OpenLinkRequest, OpenLinkResponse};
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION, REFERRER_POLICY, RETRY_AFTER,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{ContentBuilder, Required, Schema, SecurityRequirement};

use super::call::{self, CoreResponse};
use super::error::{ApiError, status_and_code};
use super::openapi::errors;
use super::openapi::examples::pending;
use super::openapi::parts::{integer, json_content, public, success_response, text};
use super::openapi::security::SIGNATURE;
use super::openapi::tags;
use super::options;
use super::query::Query;
use super::state::Edge;
use super::{headers, rate_limit_headers, wire};

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
    if !headers.contains_key(rate_limit_headers::RATE_LIMIT) {
        rate_limit_headers::write(window, headers);
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
            rate_limit_headers::copy(&metadata, &mut failure.headers);
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
    rate_limit_headers::copy(metadata, headers);
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

/// The maximum length of a long text in a query, in characters.
const MAX_TEXT: usize = 4096;

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "A link that can be published, for example as the source of an image: it captures the page, or finds \
                 an image that is at most `max_age` old, and redirects to it. A link allows nothing else, and cannot be \
                 changed without the secret that signed it. An image that was found is free, and not counted in any \
                 limit of the team.\n\nThe answer is that of a synchronous create: it comes within 25 seconds. With \
                 `on_error=placeholder`, an error is a small SVG picture instead of JSON, with the same status.";
    let codes = [
        ErrorCode::Unauthorized,
        ErrorCode::BadRequest,
        ErrorCode::InvalidViewport,
        ErrorCode::SsrfDetected,
        ErrorCode::CreditsExhausted,
        ErrorCode::NotFound,
        ErrorCode::RenderBlocked,
        ErrorCode::RenderFailed,
    ];
    let redirect = success_response("The image is at `Location`.", &["Location", "ETag", "Cache-Control"]);
    let open = success_response("The capture has not ended. Repeat the request.", &["Retry-After"])
        .content("application/json", json_content("Grab", pending()).build());
    let operation = public(tags::GRABS, "openLink", "Open a signed link", about, &codes)
        .securities(Some([SecurityRequirement::new::<_, [&str; 0], _>(SIGNATURE, [])]))
        .response("202", open)
        .response("302", redirect);
    let options = TABLE.iter().filter(|option| option.refused_in_links().is_none());
    let key = text().pattern(Some("^lk_[0-9a-f]{32}$"));
    let others = [
        member("key", "The `link_key` of the API key that signed the link.", key.into(), true),
        member(
            "expires",
            "When the link expires, in seconds since 1970: at most 366 days from now.",
            integer(0, 253_402_300_799).into(),
            true,
        ),
        member(
            "on_error",
            "`placeholder`: answer errors with a picture.",
            text().enum_values(Some(["placeholder"])).into(),
            false,
        ),
    ];
    // `public` has documented them as JSON.
    let errors = errors::responses(&[&codes[..], &[ErrorCode::RateLimitExceeded, ErrorCode::InternalError]].concat());
    let operation = errors.into_iter().fold(operation, |operation, (status, mut answer)| {
        let picture = ContentBuilder::new().schema(Some(text())).build();
        answer.content.insert("image/svg+xml".to_owned(), picture.into());
        operation.response(status, answer)
    });
    let parameters = options.map(of_option).chain(others);
    parameters.fold(operation, OperationBuilder::parameter)
}

fn of_option(option: &CaptureOption) -> Parameter {
    let schema = match option.kind {
        Kind::Integer { min, max, .. } if option.name == "max_age" => {
            integer(min, max).default(Some(json!(86_400))).into()
        }
        // The header of a request, which has the query, is limited to 16 KiB.
        Kind::Text { max, .. } => text().max_length(Some(max.min(MAX_TEXT))).into(),
        Kind::Integer { .. }
        | Kind::Number { .. }
        | Kind::Flag
        | Kind::Word(_)
        | Kind::Url
        | Kind::Selector
        | Kind::TimeZone
        | Kind::Locale
        | Kind::RequestFailure
        | Kind::PageRanges
        | Kind::GrabId
        | Kind::ProxyId
        | Kind::Chars { .. } => options::schema(option),
        // In a query, these are text.
        Kind::Selectors { .. }
        | Kind::Words(_)
        | Kind::Patterns { .. }
        | Kind::Object { .. }
        | Kind::Objects { .. }
        | Kind::Sizes { .. }
        | Kind::Choices { .. }
        | Kind::Headers { .. }
        | Kind::Labels { .. }
        | Kind::Statuses { .. }
        | Kind::Rectangle => text().into(),
    };
    let about = if let Kind::Selectors { max } = option.kind {
        format!("{} One on each line, at most {max}.", option.help)
    } else {
        option.kind.syntax().map_or_else(|| option.help.to_owned(), |syntax| format!("{} {syntax}", option.help))
    };
    member(option.name, &about, schema, option.name == "url")
}

fn member(name: &str, about: &str, schema: Schema, is_required: bool) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(if is_required { Required::True } else { Required::False })
        .description(Some(about))
        .schema(Some(schema))
        .build()
}
