//! Examples of captures that readers can run, or try in the form for a new capture.

use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::Environment;
use serde_json::{Map, Value};

use crate::form::Form;
use crate::grabs::options;
use crate::paths::NEW_CAPTURE;

/// An example of a capture that readers can run in test mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Example {
    /// The fields of the form for a new capture.
    pub(super) fields: Vec<(String, String)>,
    /// The path of that form, filled in with them.
    pub(super) form_path: String,
}

/// The capture of an example. None if the example is not a `POST /v1/grabs` by curl, or if the form cannot be filled in with
/// one of its members.
pub(super) fn parse(example: &str) -> Option<Example> {
    let mut request = CaptureRequest::default();
    for (name, value) in body(example)? {
        if !request.set(&name, serde_json::from_value(value).ok()?) {
            return None;
        }
    }
    let spec = CaptureSpec::parse(&request).ok()?;
    let query = options::to_query(&spec, Environment::Test);
    // A query has no secrets, and the form has no documents. Both would be missing in the capture.
    let form = Form::parse(query.as_bytes());
    let filled_in = CaptureSpec::parse(&options::request(&form)).ok()?;
    let example = || Example { fields: form.fields().clone(), form_path: format!("{NEW_CAPTURE}?{query}") };
    (filled_in == spec).then(example)
}

/// The body of a `POST /v1/grabs` by curl.
fn body(example: &str) -> Option<Map<String, Value>> {
    let mut words = example.split_whitespace();
    if words.next() != Some("curl") || !words.any(|word| word.ends_with("/v1/grabs")) {
        return None;
    }
    let (_, rest) = example.split_once(" -d '")?;
    let (body, _) = rest.split_once('\'')?;
    serde_json::from_str(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form_path(example: &str) -> Option<String> {
        parse(example).map(|example| example.form_path)
    }

    /// The example with this body.
    fn curl(body: &str) -> String {
        format!(
            "curl -sS https://grabs.example.com/v1/grabs \\\n  -H \"Authorization: Bearer $GRAB_API_KEY\" \\\n  \
             -H 'Content-Type: application/json' \\\n  -d '{body}'\n"
        )
    }

    #[test]
    fn members_of_the_body_become_fields_of_the_form() {
        for (body, query) in [
            (r#"{"url": "https://example.com"}"#, ""),
            // Options with their defaults are left out.
            (r#"{"url": "https://example.com", "width": 1280, "full_page": false}"#, ""),
            (
                r#"{"url": "https://example.com", "device": "phone", "color_scheme": "dark", "full_page": true}"#,
                "&full_page=true&color_scheme=dark&device=phone",
            ),
            (
                r#"{"url": "https://example.com", "selector": "h1", "scale": 1.5, "block": ["ads", "trackers"]}"#,
                "&selector=h1&scale=1.5&block=ads%2C+trackers",
            ),
            (
                r#"{"url": "https://example.com", "clip": {"x": 1, "y": 2, "width": 3, "height": 4}}"#,
                "&clip=1%2C2%2C3%2C4",
            ),
        ] {
            let expected = format!("/capture?url=https%3A%2F%2Fexample.com%2F{query}&environment=test");
            assert_eq!(form_path(&curl(body)), Some(expected), "{body}");
        }
    }

    #[test]
    fn examples_that_do_not_fit_into_the_form_have_no_path() {
        for body in [
            "",
            "[]",
            r#"{"width": 800}"#,
            r#"{"url": "https://example.com", "colour": "red"}"#,
            r#"{"url": "https://example.com", "width": "800"}"#,
            r#"{"url": "https://example.com", "width": 10}"#,
            r#"{"url": "https://example.com", "headers": {"x-a": "1"}}"#,
            r#"{"url": "https://example.com", "upload_url": "https://bucket.example.com/a?sig=b"}"#,
            r#"{"html": "<h1>Hello</h1>"}"#,
        ] {
            assert_eq!(form_path(&curl(body)), None, "{body}");
        }
        let example = curl(r#"{"url": "https://example.com"}"#);
        assert!(form_path(&example).is_some());
        assert_eq!(form_path(&example.replace("/v1/grabs", "/v1/grabs/batch")), None);
        assert_eq!(form_path(&example.replace("curl", "wget")), None);
    }

    #[test]
    fn fields_are_those_of_the_form_in_test_mode() {
        let example = parse(&curl(r#"{"url": "https://example.com", "full_page": true}"#)).unwrap();
        let fields: Vec<(&str, &str)> = example.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(fields, [("url", "https://example.com/"), ("full_page", "true"), ("environment", "test")]);
    }
}
