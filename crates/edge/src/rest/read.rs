//! `GET /v1/grabs/{id}/read`: a text of a grab, within a number of tokens.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_api::{GrabText, words};
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{ErrorCode, GetGrabRequest, Grab, Unparsed};
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode, Uri};
use serde_json::json;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};

use super::call::{self, CoreResponse};
use super::error::ApiError;
use super::openapi::examples::EXAMPLE_ID;
use super::openapi::parts::{self, authenticated, integer, json_content, parameter, success_response, text};
use super::openapi::tags;
use super::path_id::id;
use super::query::Query;
use super::state::Edge;
use super::{headers, rate_limit_headers};
use crate::reading::{DEFAULT_TOKENS, FileError, MAX_TOKENS, MIN_TOKENS, ReadError, Readable, cut, tokens_estimate};

/// The path of the route.
pub(super) const PATH: &str = "/v1/grabs/{id}/read";
/// When to try again after a file was not read for want of memory, in seconds.
const RETRY_AFTER_S: u64 = 5;

/// What is read.
#[derive(Debug)]
struct Wanted {
    format: Readable,
    max_tokens: u32,
    from: usize,
    compare_to: Option<String>,
}

/// Returns a text of a grab.
pub(super) async fn read(
    State(edge): State<Arc<Edge>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let id = id(path);
    let (parts, _) = request.into_parts();
    // The core checks the credential and the limits first.
    let CoreResponse { message: grab, mut metadata } = get_grab(&edge, &parts.headers, id).await?;
    let read = read_grab(&edge, &parts.headers, &parts.uri, &grab, &mut metadata).await;
    match read {
        Ok(text) => Ok(headers::json_response(StatusCode::OK, headers::PRIVATE_NO_STORE, &text, &metadata)),
        Err(mut failure) => {
            // Those of the core have the limit after the last request.
            if !failure.headers.contains_key(rate_limit_headers::RATE_LIMIT) {
                rate_limit_headers::copy(&metadata, &mut failure.headers);
            }
            Err(failure)
        }
    }
}

/// Reads the text. `metadata` becomes that of the core's last response.
async fn read_grab(
    edge: &Edge,
    request: &HeaderMap,
    uri: &Uri,
    grab: &Grab,
    metadata: &mut HeaderMap,
) -> Result<GrabText<'static>, ApiError> {
    let wanted = Wanted::parse(uri)?;
    let earlier = earlier(edge, request, grab, &wanted).await?.map(|found| {
        *metadata = found.metadata;
        found.message
    });
    let document = edge.reader.text(grab, wanted.format, earlier.as_ref()).await.map_err(|why| failure(&why))?;
    let text = &document.text;
    let piece = cut(text, wanted.from, wanted.max_tokens).ok_or_else(|| {
        let (from, length) = (wanted.from, text.len());
        invalid(&format!("`from` must be 0 or the `next` of an earlier part, and at most {length}; got {from}."))
    })?;
    let number = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    Ok(GrabText {
        format: wanted.format.name().into(),
        text: piece.text.to_owned().into(),
        from: number(wanted.from),
        next: piece.next.map(number),
        tokens_estimate: tokens_estimate(piece.text),
        total_tokens: tokens_estimate(text),
    })
}

impl Wanted {
    /// Reads the query.
    ///
    /// # Errors
    /// For the first parameter that is not allowed.
    fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let query = Query::from_uri(uri);
        let mut unparsed = Vec::new();
        let format =
            query.parse("format", &mut unparsed, |name| Readable::from_name(name).filter(|format| format.is_text()));
        let max_tokens = query.parse("max_tokens", &mut unparsed, |text| {
            text.parse::<u32>().ok().filter(|tokens| (MIN_TOKENS..=MAX_TOKENS).contains(tokens))
        });
        let from = query.parse("from", &mut unparsed, |text| text.parse::<usize>().ok());
        let compare_to = query.single("compare_to", &mut unparsed).map(str::to_owned);
        if let Some(Unparsed { field, seen }) = unparsed.first() {
            let allowed = match field.as_str() {
                "format" => words::text_formats().join(", ").replace(", difference", " or difference"),
                "max_tokens" => format!("an integer from {MIN_TOKENS} to {MAX_TOKENS}"),
                "from" => "an integer of at least 0".to_owned(),
                _ => "one id of a grab".to_owned(),
            };
            return Err(invalid(&format!("`{field}` must be {allowed}; got {seen}.")));
        }
        Ok(Self {
            format: format.unwrap_or(Readable::Markdown),
            max_tokens: max_tokens.unwrap_or(DEFAULT_TOKENS),
            from: from.unwrap_or(0),
            compare_to,
        })
    }
}

/// The grab to compare with, for a difference: that of the query, or that of the capture.
async fn earlier(
    edge: &Edge,
    request: &HeaderMap,
    grab: &Grab,
    wanted: &Wanted,
) -> Result<Option<CoreResponse<Grab>>, ApiError> {
    if wanted.format != Readable::Difference {
        return Ok(None);
    }
    let of_capture = grab.difference.as_ref().map(|difference| &difference.compared_to);
    let Some(id) = wanted.compare_to.as_ref().or(of_capture) else { return Ok(None) };
    let found = get_grab(edge, request, id.clone()).await.map_err(|mut failure| {
        if failure.code == ErrorCode::NotFound {
            failure.message = format!("`compare_to`: {}", failure.message).into();
        }
        failure
    })?;
    Ok(Some(found))
}

async fn get_grab(edge: &Edge, request: &HeaderMap, id: String) -> Result<CoreResponse<Grab>, ApiError> {
    let mut core = GrabServiceClient::new(edge.transport.clone());
    let sent = call::request(request, GetGrabRequest { id }, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } = call::send(request, call::QUERY_DEADLINE, core.get_grab(sent)).await?;
    let message =
        message.grab.ok_or_else(|| ApiError::internal("the core returned no grab", call::request_id(request)))?;
    Ok(CoreResponse { message, metadata })
}

fn invalid(message: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message.to_owned())
}

/// The error for what cannot be read.
fn failure(why: &ReadError) -> ApiError {
    let code = match why {
        ReadError::NotDone(_)
        | ReadError::Failed
        | ReadError::Deleted
        | ReadError::NoFile(_)
        | ReadError::File(FileError::Missing) => ErrorCode::NotFound,
        ReadError::NoText(_) | ReadError::NoEarlier | ReadError::File(FileError::TooLarge(_)) => ErrorCode::BadRequest,
        ReadError::File(FileError::Busy) => ErrorCode::RateLimitExceeded,
        ReadError::File(FileError::Unreadable) => ErrorCode::InternalError,
    };
    let mut failure = ApiError::new(code, why.to_string());
    if code == ErrorCode::RateLimitExceeded {
        failure.headers.insert(RETRY_AFTER, RETRY_AFTER_S.into());
    }
    failure
}

/// The operation in the OpenAPI document.
pub(super) fn operation() -> OperationBuilder {
    let about = "A file of the grab as text for language models, cut between paragraphs or lines to at most `max_tokens`. \
                 Elements and the report have a line for each item; `covered_by` in the line of an element is what is in front of it. \
                 A difference says which elements and which lines of text \
                 came, went or changed since an earlier grab; both grabs need `also: [\"elements\", \"text\"]`. To go on, send \
                 `next` as `from`. A row of a table is not cut, so that a part may have more tokens. If the capture did not make \
                 the file, or is not done, the answer is 404.";
    let example = json!({
        "format": "markdown",
        "text": "# Example Domain\n\nThis domain is for use in examples.\n",
        "from": 0,
        "next": null,
        "tokens_estimate": 14,
        "total_tokens": 14
    });
    let codes = [ErrorCode::BadRequest, ErrorCode::NotFound];
    let least = |number: u32| integer(i64::from(number), i64::from(MAX_TOKENS));
    authenticated(tags::GRABS, "readGrab", "Read a grab as text", about, &codes)
        .parameter(parts::id("grab"))
        .parameter(parameter(
            ParameterIn::Query,
            "format",
            "What is read.",
            words::text_format_schema(),
            Some(json!("markdown")),
        ))
        .parameter(parameter(
            ParameterIn::Query,
            "max_tokens",
            "Estimated number of tokens of the text, at most.",
            least(MIN_TOKENS).default(Some(json!(DEFAULT_TOKENS))),
            None,
        ))
        .parameter(parameter(
            ParameterIn::Query,
            "from",
            "The byte of the whole text at which to begin: 0, or the `next` of the part before.",
            integer(0, i64::from(u32::MAX)).default(Some(json!(0))),
            None,
        ))
        .parameter(parameter(
            ParameterIn::Query,
            "compare_to",
            "Of a difference: the id of the earlier grab, unless it is the `compare_to` of the capture.",
            text().format(Some(utoipa::openapi::SchemaFormat::Custom("uuid".to_owned()))),
            Some(json!(EXAMPLE_ID)),
        ))
        .response(
            "200",
            success_response("The text.", &[]).content("application/json", json_content("GrabText", example).build()),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<Wanted, ApiError> {
        Wanted::parse(&format!("/v1/grabs/x/read?{query}").parse().unwrap())
    }

    #[test]
    fn formats_are_those_that_are_text() {
        let texts = Readable::offered().filter(|kind| kind.is_text());
        assert!(texts.map(Readable::name).eq(words::text_formats()));
    }

    #[test]
    fn parameters_are_checked() {
        let wanted = parse("").unwrap();
        assert_eq!((wanted.format, wanted.max_tokens, wanted.from), (Readable::Markdown, DEFAULT_TOKENS, 0));
        let wanted = parse("format=difference&max_tokens=100&from=7&compare_to=x").unwrap();
        assert_eq!((wanted.format, wanted.max_tokens, wanted.from), (Readable::Difference, 100, 7));
        for (query, seen) in
            [("format=pdf", "\"pdf\""), ("format=marks", "\"marks\""), ("format=text&format=text", "2 values")]
        {
            let message = parse(query).unwrap_err().message;
            assert!(message.starts_with("`format` must be markdown, text, elements, "), "{message}");
            assert!(message.ends_with(&format!(" or difference; got {seen}.")), "{message}");
        }
        for (query, expected) in [
            ("max_tokens=99", "`max_tokens` must be an integer from 100 to 50000; got \"99\"."),
            ("max_tokens=50001", "`max_tokens` must be an integer from 100 to 50000; got \"50001\"."),
            ("from=-1", "`from` must be an integer of at least 0; got \"-1\"."),
            ("compare_to=a&compare_to=b", "`compare_to` must be one id of a grab; got 2 values."),
        ] {
            assert_eq!(parse(query).unwrap_err().message, expected, "{query}");
        }
    }
}
