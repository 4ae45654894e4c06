//! The options of a capture as the fields of a form: how they are shown, read, and complained about.

use grabd_domain::Fault;
use grabd_domain::capture::{CaptureRequest, CaptureSpec, Format};
use grabd_domain::credentials::Environment;
use grabd_domain::faults;
use grabd_domain::limits;

use crate::form::{Complaint, Form};

/// The field of the environment.
pub(crate) const ENVIRONMENT: &str = "environment";

/// A text field.
pub(crate) struct Text {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) hint: String,
    pub(crate) longest: usize,
    pub(crate) input_mode: &'static str,
    pub(crate) is_required: bool,
    pub(crate) value: String,
    pub(crate) error: Option<String>,
}

/// A field for a whole number.
pub(crate) struct Number {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) least: i64,
    pub(crate) most: i64,
    pub(crate) value: String,
    pub(crate) error: Option<String>,
}

impl Number {
    pub(crate) fn hint(&self) -> String {
        format!("{} to {}", self.least, self.most)
    }
}

/// Every option, with what stands in it.
pub(crate) struct Options {
    pub(crate) url: Text,
    pub(crate) width: Number,
    pub(crate) height: Number,
    pub(crate) delay_ms: Number,
    pub(crate) selector: Text,
    /// Each format's word, what people call it, and whether it is chosen.
    pub(crate) formats: Vec<(&'static str, &'static str, bool)>,
    pub(crate) format_error: Option<String>,
    pub(crate) full_page: bool,
}

impl Options {
    /// What was sent, or what a link asks for, with the complaints about it.
    pub(crate) fn of(sent: &Form, complaints: &[Complaint]) -> Self {
        let error = |name| {
            let own = complaints.iter().find(|complaint| complaint.field == name);
            own.map(|complaint| complaint.message.clone())
        };
        let or = |name, otherwise: String| if sent.has(name) { sent.one(name).to_owned() } else { otherwise };
        let number = |name, label, range: std::ops::RangeInclusive<i64>, otherwise: String| Number {
            name,
            label,
            least: *range.start(),
            most: *range.end(),
            value: or(name, otherwise),
            error: error(name),
        };
        let chosen = or("format", Format::default().as_str().to_owned());
        let format = |format: Format| (format.as_str(), format_name(format), format.as_str() == chosen);
        Self {
            url: url(sent, error("url")),
            width: number("width", "Width", limits::WIDTH, limits::DEFAULT_WIDTH.to_string()),
            height: number("height", "Height", limits::HEIGHT, limits::DEFAULT_HEIGHT.to_string()),
            delay_ms: number("delay_ms", "Wait before the shot", limits::DELAY_MS, "0".to_owned()),
            selector: Text {
                name: "selector",
                label: "Only one element",
                hint: "A CSS selector, such as main or #chart. Empty: the page.".to_owned(),
                longest: limits::SELECTOR_CHARS,
                input_mode: "text",
                is_required: false,
                value: sent.one("selector").to_owned(),
                error: error("selector"),
            },
            formats: [Format::Png, Format::Jpeg, Format::Webp].map(format).to_vec(),
            format_error: error("format"),
            full_page: sent.one("full_page") == "true",
        }
    }
}

/// The field of the address.
pub(crate) fn url(sent: &Form, error: Option<String>) -> Text {
    Text {
        name: "url",
        label: "Address of the page",
        hint: "Such as https://example.com/. It must be public.".to_owned(),
        longest: limits::URL_BYTES,
        input_mode: "url",
        is_required: true,
        value: sent.one("url").to_owned(),
        error,
    }
}

/// A format as people call it.
pub(crate) const fn format_name(format: Format) -> &'static str {
    match format {
        Format::Png => "PNG",
        Format::Jpeg => "JPEG",
        Format::Webp => "WebP",
    }
}

/// The request that a form makes. Nothing is judged here but whether a number is one: the core says what will do.
pub(crate) fn request(sent: &Form) -> CaptureRequest {
    let mut unparsed = Vec::new();
    let mut number = |name: &'static str| {
        let text = sent.one(name).trim();
        let number = text.parse().ok();
        if number.is_none() && !text.is_empty() {
            unparsed.push((name.to_owned(), format!("\"{text}\"")));
        }
        number
    };
    let (width, height, delay_ms) = (number("width"), number("height"), number("delay_ms"));
    let text = |name| Some(sent.one(name).trim()).filter(|text| !text.is_empty()).map(str::to_owned);
    CaptureRequest {
        url: text("url").map(with_scheme),
        width,
        height,
        format: text("format"),
        full_page: Some(sent.one("full_page") == "true"),
        delay_ms,
        selector: text("selector"),
        unparsed,
    }
}

/// People leave the scheme out. What has a colon before its first slash says something else with it.
pub(crate) fn with_scheme(text: String) -> String {
    let first = text.split('/').next().unwrap_or_default();
    if first.is_empty() || first.contains(':') { text } else { format!("https://{text}") }
}

/// The same options as a query, for a form that is to begin with them.
pub(crate) fn to_query(spec: &CaptureSpec, environment: Environment) -> String {
    let (width, height) = (spec.viewport.width().to_string(), spec.viewport.height().to_string());
    let delay_ms = spec.delay.as_millis().to_string();
    let mut pairs = vec![
        ("url", spec.url.as_str()),
        ("width", &width),
        ("height", &height),
        ("format", spec.format.as_str()),
        ("full_page", if spec.full_page { "true" } else { "false" }),
        ("delay_ms", &delay_ms),
        (ENVIRONMENT, environment.as_str()),
    ];
    if let Some(selector) = &spec.selector {
        pairs.push(("selector", selector.as_str()));
    }
    Form::from_iter(pairs).to_query()
}

/// What a refused create means for who filled the form in; `Err` when they can do nothing about it here.
pub(crate) fn complaint(fault: Fault) -> Result<Complaint, Fault> {
    let about = |field: &'static str, message: String| Ok(Complaint { field, message });
    match fault {
        Fault::BadRequest(field) | Fault::InvalidViewport(field) => about(field.name, sentence(&field)),
        Fault::SsrfDetected(_) => about("url", "This address is not public, so it cannot be captured.".to_owned()),
        Fault::CreditsExhausted => {
            about(ENVIRONMENT, "The team has no live credits left. Test captures cost nothing.".to_owned())
        }
        Fault::QueueLimitExceeded { limit } => about(
            "",
            format!(
                "{limit} captures of this team are under way already. Send the form again when one of them has ended."
            ),
        ),
        Fault::IdempotencyMismatch(_) | Fault::IdempotencyConflict => {
            about("", "This form was sent before, with other options. Send it again to capture with these.".to_owned())
        }
        Fault::RenderBlocked(message) | Fault::RenderFailed(message) => about("url", message),
        Fault::Unauthorized | Fault::NotFound { .. } | Fault::RateLimitExceeded { .. } | Fault::InternalError => {
            Err(fault)
        }
    }
}

/// The core's complaint with the name that the field has on the page.
fn sentence(field: &faults::Field) -> String {
    let faults::Field { name, seen, allowed } = field;
    let label = match *name {
        "url" => "The address",
        "width" => "The width",
        "height" => "The height",
        "format" => "The format",
        "delay_ms" => "The wait before the shot",
        "selector" => "The selector",
        _ => "The form",
    };
    match (*name, seen.is_empty()) {
        ("url", true) => "Write the address of a page.".to_owned(),
        (_, true) => format!("{label} must be {allowed}."),
        (_, false) => format!("{label} must be {allowed}; it was {seen}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(query: &str) -> CaptureRequest {
        request(&Form::parse(query.as_bytes()))
    }

    #[test]
    fn what_is_empty_is_left_to_the_core() {
        let request = asks("url=&width=+&height=&format=&delay_ms=&selector=");
        assert_eq!((request.url, request.width, request.selector), (None, None, None));
        assert!(request.unparsed.is_empty());
        assert_eq!(request.full_page, Some(false));
    }

    #[test]
    fn numbers_that_are_none_are_shown_to_the_core() {
        let request = asks("url=https://example.com/&width=wide&height=7e2&delay_ms=500");
        assert_eq!((request.width, request.height, request.delay_ms), (None, None, Some(500)));
        let seen: Vec<_> = request.unparsed.iter().map(|(name, seen)| (&**name, &**seen)).collect();
        assert_eq!(seen, [("width", "\"wide\""), ("height", "\"7e2\"")]);
        let fault = CaptureSpec::parse(&request).unwrap_err();
        let Complaint { field, message } = complaint(fault).unwrap();
        assert_eq!((field, &*message), ("width", "The width must be an integer from 320 to 1920; it was \"wide\"."));
    }

    #[test]
    fn people_leave_the_scheme_out() {
        for (text, url) in [
            ("example.com", "https://example.com"),
            (" example.com/a?b=c:d ", "https://example.com/a?b=c:d"),
            ("http://example.com", "http://example.com"),
            ("javascript:alert(1)", "javascript:alert(1)"),
            ("localhost:8080/", "localhost:8080/"),
            ("//example.com", "//example.com"),
        ] {
            assert_eq!(with_scheme(text.trim().to_owned()), url);
        }
    }

    #[test]
    fn a_form_can_begin_with_what_a_grab_was_made_with() {
        let query = "url=https%3A%2F%2Fexample.com%2F%3Fa%3Db%26c&width=800&height=600&format=webp&full_page=true\
                     &delay_ms=250&environment=test&selector=a%5Bhref%3D%22x%22%5D";
        let spec = CaptureSpec::parse(&asks(query)).unwrap();
        assert_eq!(to_query(&spec, Environment::Test), query);
        let options = Options::of(&Form::parse(query.as_bytes()), &[]);
        assert_eq!((&*options.width.value, options.full_page, options.formats[2].2), ("800", true, true));
    }
}
