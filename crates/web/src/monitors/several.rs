//! New monitors for several pages: the field for their URLs, parsing and error messages. The other fields are those of one monitor.

use grabd_domain::Fault;
use grabd_domain::faults::Field;
use grabd_domain::monitor::{MAX_BATCH, MonitorBatchRequest};
use grabd_options::plain;

use super::fields;
use crate::form::{FieldError, Form};
use crate::grabs::options::{Text, with_scheme};

const URLS: &str = "urls";
/// The most characters of all URLs. The rest of a form must fit beside them.
const URLS_CHARS: usize = 32_768;

/// The hint of the name, which is a part of each name.
pub(super) const NAME_HINT: &str = "Optional. The name of each monitor ends with the address of its page.";

/// Whether a form that was sent is for several pages.
pub(super) fn is_for(input: &Form) -> bool {
    input.has(URLS)
}

/// The field. It begins with the page that a link to the form names.
pub(super) fn field(input: &Form, errors: &[FieldError]) -> Text {
    let own = errors.iter().find(|field_error| field_error.field == URLS);
    Text {
        name: URLS,
        label: "URLs",
        hint: format!(
            "Up to {MAX_BATCH} public pages, one on each line. Each gets a monitor of its own. Either all are created or none."
        ),
        placeholder: "",
        max_length: URLS_CHARS,
        input_mode: "text",
        is_required: true,
        value: input.get(if is_for(input) { URLS } else { "url" }).to_owned(),
        error: own.map(|field_error| field_error.message.clone()),
    }
}

/// Converts a form to a request. The domain validates the values.
pub(super) fn request(input: &Form) -> MonitorBatchRequest {
    let lines = input.get(URLS).lines().map(str::trim).filter(|line| !line.is_empty());
    let urls = lines.map(|line| with_scheme(line.to_owned())).collect();
    let mut monitor = fields::request(input);
    if let Some(capture) = &mut monitor.capture {
        capture.url = None;
    }
    MonitorBatchRequest { urls, monitor }
}

/// The form error for a rejected request; `Err` if the user cannot correct it in the form.
pub(super) fn field_error(fault: Fault) -> Result<FieldError, Fault> {
    match fault.field().filter(|field| field.name.starts_with(URLS)) {
        Some(field) => Ok(FieldError { field: URLS, message: message(field) }),
        None => fields::field_error(fault),
    }
}

/// The error about the list, or about a URL in it.
fn message(field: &Field) -> String {
    let Field { name, seen, allowed, .. } = field;
    let place = name.strip_prefix("urls[").and_then(|rest| rest.strip_suffix(']')?.parse::<usize>().ok());
    match place {
        None => format!("Enter 1 to {MAX_BATCH} URLs, one on each line."),
        Some(place) => format!("URL {} must be {}; it was {seen}.", place + 1, plain::text(allowed)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SHORTEST: Duration = Duration::from_secs(300);
    const REST: &str = "every=1d&compare_image=true&threshold=0.1&width=800&name=Prices";

    fn form(urls: &str) -> Form {
        Form::parse(format!("{REST}&urls={urls}").as_bytes())
    }

    #[test]
    fn lines_are_the_pages_of_the_monitors() {
        let specs = request(&form("example.com/a%0D%0A%0D%0A+http://example.org+%0D%0A")).parse(SHORTEST).unwrap();
        let shown: Vec<(&str, &str)> =
            specs.iter().map(|spec| (spec.capture.url.as_str(), spec.name.as_str())).collect();
        let expected =
            [("https://example.com/a", "Prices: example.com/a"), ("http://example.org/", "Prices: example.org")];
        assert_eq!(shown, expected);
    }

    #[test]
    fn errors_are_about_the_list_or_a_url_in_it() {
        let error = |input: &Form| field_error(request(input).parse(SHORTEST).unwrap_err()).unwrap();
        for (urls, words) in [
            ("", "Enter 1 to 50 URLs"),
            ("example.com%0D%0Aa+b", "URL 2 must be"),
            ("example.com%0D%0Aexample.com", "URL 2 must be another URL than those before it"),
        ] {
            let error = error(&form(urls));
            assert!(error.field == URLS && error.message.contains(words), "{urls}: {error:?}");
        }
        assert_eq!(error(&Form::parse(b"every=4m&compare_image=true&urls=example.com")).field, "every");
    }

    #[test]
    fn field_begins_with_the_page_of_a_link() {
        let value = |query: &[u8]| field(&Form::parse(query), &[]).value;
        assert_eq!(value(b"url=https://example.com/"), "https://example.com/");
        assert_eq!(value(b"url=https://example.com/&urls=a"), "a");
    }
}
