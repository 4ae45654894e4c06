//! The operation of signed links.

use grabd_options::{CaptureOption, Kind, TABLE};
use grabd_proto::v1::ErrorCode;
use serde_json::json;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Required, Schema, SecurityRequirement};

use super::super::options;
use super::errors;
use super::examples::pending;
use super::parts::{integer, json_content, path, public, success_response, text};

/// The maximum length of a long text in a query, in characters.
const MAX_TEXT: usize = 4096;

/// Name of the security scheme.
pub(super) const SIGNATURE: &str = "signature";

const TAG: &str = "Grabs";

/// The path of links.
pub(super) fn operations() -> Vec<(&'static str, PathItem)> {
    vec![path("/shot", [(HttpMethod::Get, open())])]
}

/// The signature of a link as a credential.
pub(super) fn signature() -> SecurityScheme {
    let about = "The last member of the query: the HMAC-SHA256 of the query before `&sig=`, as it is sent, with the \
                 `link_secret` of an API key, in lower-case hexadecimal digits.";
    SecurityScheme::ApiKey(ApiKey::Query(ApiKeyValue::with_description("sig", about)))
}

fn open() -> OperationBuilder {
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
    let operation = public(TAG, "openLink", "Open a signed link", about, &codes)
        .securities(Some([SecurityRequirement::new::<_, [&str; 0], _>(SIGNATURE, [])]))
        .response("202", open)
        .response("302", redirect);
    // `base_url` belongs to `html`, which is secret.
    let left_out = ["script", "base_url", "compare_to"];
    let options = TABLE.iter().filter(|option| !option.is_secret && !left_out.contains(&option.name));
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
        | Kind::PageRanges
        | Kind::GrabId
        | Kind::Chars { .. } => options::schema(option),
        // In a query, these are text.
        Kind::Selectors { .. }
        | Kind::Words(_)
        | Kind::Patterns { .. }
        | Kind::Object { .. }
        | Kind::Objects { .. }
        | Kind::Sizes { .. }
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
