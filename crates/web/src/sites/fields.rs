//! The form fields of a job that captures a site: rendering, parsing and error messages. The options of its captures are those of
//! `grabs/options`.

use grabd_domain::Fault;
use grabd_domain::capture::CaptureRequest;
use grabd_domain::faults::Field;
use grabd_domain::site::{
    MAX_DEPTH, MAX_PAGES, MAX_PATTERNS, NAME_CHARS, PATTERN_CHARS, REQUESTS_PER_MINUTE, SiteRequest,
};

use crate::form::{FieldError, Form};
use crate::grabs::options::{self, Text};

/// The field that says how pages are found.
pub(super) const SOURCE: &str = "source";
/// Its value if links are followed.
pub(super) const LINKS: &str = "links";
/// Its value if the address is that of a sitemap.
pub(super) const SITEMAP: &str = "sitemap";
const NAME: &str = "name";
const MAX_PAGES_FIELD: &str = "max_pages";
const MAX_DEPTH_FIELD: &str = "max_depth";
const INCLUDE: &str = "include";
const EXCLUDE: &str = "exclude";
const REQUESTS: &str = "requests_per_minute";

/// The most characters of the patterns, with line breaks.
const PATTERNS_CHARS: usize = MAX_PATTERNS * (PATTERN_CHARS + 2);

/// What the form of a new job has besides the options of the captures.
pub(super) const DEFAULTS: [(&str, &str); 4] =
    [(SOURCE, LINKS), (MAX_PAGES_FIELD, "50"), (MAX_DEPTH_FIELD, "3"), (REQUESTS, "30")];

/// The fields, with their values.
pub(super) struct Fields {
    pub(super) name: Text,
    pub(super) max_pages: Text,
    pub(super) max_depth: Text,
    pub(super) include: Text,
    pub(super) exclude: Text,
    pub(super) requests_per_minute: Text,
}

impl Fields {
    /// The fields of a form, with their errors.
    pub(super) fn of(input: &Form, errors: &[FieldError]) -> Self {
        let text = |name, label, hint: String, max_length| Text {
            name,
            label,
            hint,
            placeholder: "",
            max_length,
            input_mode: "text",
            is_required: false,
            value: input.get(name).to_owned(),
            error: error_of(name, errors),
        };
        let number = |name, label, hint| Text { input_mode: "numeric", ..text(name, label, hint, 4) };
        let pages = format!("From 1 to {MAX_PAGES}. Each capture costs 1 credit if it succeeds.");
        let depth = format!(
            "From {} to {}. 0: only the start page. Not used with a sitemap.",
            MAX_DEPTH.start(),
            MAX_DEPTH.end()
        );
        let requests = format!(
            "From {} to {}. How fast the site is asked.",
            REQUESTS_PER_MINUTE.start(),
            REQUESTS_PER_MINUTE.end()
        );
        let include = "Patterns of path and query, one on each line, such as /docs/*. Empty: all pages of the site.";
        let exclude = "Patterns of pages that are not captured, even if they are included.";
        Self {
            name: text(NAME, "Name", "Optional. The host of the site is the default.".to_owned(), NAME_CHARS),
            max_pages: number(MAX_PAGES_FIELD, "Pages at most", pages),
            max_depth: number(MAX_DEPTH_FIELD, "Links away from the start page", depth),
            include: text(INCLUDE, "Include", include.to_owned(), PATTERNS_CHARS),
            exclude: text(EXCLUDE, "Exclude", exclude.to_owned(), PATTERNS_CHARS),
            requests_per_minute: number(REQUESTS, "Requests a minute", requests),
        }
    }
}

/// The message of the error about a field.
pub(super) fn error_of(name: &str, errors: &[FieldError]) -> Option<String> {
    let own = errors.iter().find(|field_error| field_error.field == name);
    own.map(|field_error| field_error.message.clone())
}

/// Converts a form to a request. The domain validates the values.
pub(super) fn request(input: &Form) -> SiteRequest {
    let mut unparsed = Vec::new();
    let given = |name: &str| Some(input.get(name).trim().to_owned()).filter(|text| !text.is_empty());
    let mut number = |name: &str| {
        let text = given(name)?;
        let number = text.parse::<i64>().ok();
        if number.is_none() {
            unparsed.push((name.to_owned(), format!("\"{text}\"")));
        }
        number
    };
    let is_sitemap = input.get(SOURCE) == SITEMAP;
    let (max_pages, requests_per_minute) = (number(MAX_PAGES_FIELD), number(REQUESTS));
    let max_depth = if is_sitemap { None } else { number(MAX_DEPTH_FIELD) };
    let lines = |name: &str| {
        let lines = input.get(name).lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let capture = options::request(input);
    // An empty one is an error that names the field.
    let address = Some(capture.url.clone().unwrap_or_default());
    SiteRequest {
        url: address.clone().filter(|_| !is_sitemap),
        sitemap: address.filter(|_| is_sitemap),
        capture: Some(CaptureRequest { url: None, ..capture }),
        max_pages,
        max_depth,
        include: lines(INCLUDE),
        exclude: lines(EXCLUDE),
        robots: None,
        requests_per_minute,
        name: given(NAME),
        unparsed,
    }
}

/// The form error for a rejected request; `Err` if the user cannot correct it in the form.
pub(super) fn field_error(fault: Fault) -> Result<FieldError, Fault> {
    if let Fault::BadRequest(field) = &fault
        && let Some(error) = own_error(field)
    {
        return Ok(error);
    }
    options::field_error(fault)
}

/// The error about a field that is none of the options of the captures.
fn own_error(field: &Field) -> Option<FieldError> {
    let (name, label) = match field.name {
        NAME => (NAME, "The name"),
        MAX_PAGES_FIELD => (MAX_PAGES_FIELD, "The number of pages"),
        MAX_DEPTH_FIELD => (MAX_DEPTH_FIELD, "The number of links"),
        INCLUDE => (INCLUDE, "Included pages"),
        EXCLUDE => (EXCLUDE, "Excluded pages"),
        REQUESTS => (REQUESTS, "The number of requests"),
        SITEMAP => ("url", "The address of the sitemap"),
        "capture" => {
            let message = "The options of the captures are too long, or do not fit a site.".to_owned();
            return Some(FieldError { field: "", message });
        }
        "sites" => {
            let message = format!("The limit is reached: {}. Wait for another job, or cancel it.", field.allowed);
            return Some(FieldError { field: "", message });
        }
        _ => return None,
    };
    let Field { seen, allowed, .. } = field;
    // Forms have a line for each.
    let allowed = allowed.replace('`', "").replace("an array of ", "");
    let message = match seen.is_empty() || seen == "\"\"" {
        true => format!("{label} must be {allowed}."),
        false => format!("{label} must be {allowed}; it was {seen}."),
    };
    Some(FieldError { field: name, message })
}

#[cfg(test)]
mod tests {
    use grabd_domain::site::{SiteSpec, Source};

    use super::*;

    fn parse(query: &str) -> Result<SiteSpec, Fault> {
        SiteSpec::parse(&request(&Form::parse(query.as_bytes())), MAX_PAGES, false)
    }

    #[test]
    fn form_is_a_request() {
        let spec = parse(
            "url=example.com&source=links&max_pages=7&max_depth=0&include=/docs/*%0D%0A%0D%0A/blog/*&exclude=*?print=*&width=800",
        );
        let spec = spec.unwrap();
        assert_eq!((spec.max_pages, spec.max_depth(), &*spec.name), (7, Some(0), "example.com"));
        assert_eq!((spec.include.len(), spec.exclude.len(), spec.capture.viewport.width()), (2, 1, 800));
        let spec = parse("url=https://example.com/sitemap.xml&source=sitemap&max_depth=3").unwrap();
        assert!(matches!(spec.source, Source::Sitemap(_)), "the depth of the form is not used");
    }

    #[test]
    fn errors_name_their_field() {
        for (query, field, words) in [
            ("url=&source=links", "url", "Enter"),
            ("url=&source=sitemap", "url", "The address of the sitemap must be"),
            ("url=example.com&max_pages=0", MAX_PAGES_FIELD, "from 1 to 1000; it was 0"),
            ("url=example.com&max_pages=many", MAX_PAGES_FIELD, "it was \"many\""),
            ("url=example.com&max_depth=11", MAX_DEPTH_FIELD, "from 0 to 10; it was 11"),
            ("url=example.com&include=docs", INCLUDE, "must be at most 20 patterns"),
            ("url=example.com&exclude=docs", EXCLUDE, "it was \"docs\""),
            ("url=example.com&requests_per_minute=121", REQUESTS, "from 1 to 120"),
            ("url=example.com&width=1", "width", "Width must be"),
        ] {
            let error = field_error(parse(query).unwrap_err()).unwrap();
            assert!(error.field == field && error.message.contains(words), "{query}: {error:?}");
        }
    }
}
