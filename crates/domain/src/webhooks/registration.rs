//! Validation of requests to register or update an endpoint.

use crate::address::Policy;
use crate::faults::{Fault, Field};
use crate::target::{TargetUrl, check_url};
use crate::webhooks::{DESCRIPTION_CHARS, Event, Events};

/// An unvalidated request to register or update an endpoint. Absent fields are not changed.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the names of the API")]
pub struct EndpointRequest {
    pub url: Option<String>,
    pub events: Option<Vec<String>>,
    pub description: Option<String>,
    pub status: Option<String>,
    /// Fields with a value of the wrong type, and the received value.
    pub unparsed: Vec<(String, String)>,
}

/// The operator's rules for endpoints.
#[derive(Clone, Copy, Debug)]
pub struct EndpointRules<'a> {
    /// The address policy.
    pub policy: &'a Policy,
    /// Whether plain http is allowed. For development.
    pub allow_http: bool,
}

/// A valid registration of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields of the endpoint")]
pub struct Registration {
    pub url: TargetUrl,
    pub events: Events,
    pub description: String,
}

/// A valid update of an endpoint. `None` fields are not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields of the endpoint")]
pub struct EndpointUpdate {
    pub url: Option<TargetUrl>,
    pub events: Option<Events>,
    pub description: Option<String>,
    /// Whether messages are sent.
    pub enabled: Option<bool>,
}

const URL: &str = "an https URL of a public address";

impl Registration {
    /// Validates a registration in the order body, url, events, description. A status is ignored: new endpoints are
    /// enabled.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] or [`Fault::SsrfDetected`], with the first invalid field.
    pub fn parse(request: &EndpointRequest, rules: EndpointRules<'_>) -> Result<Self, Fault> {
        let EndpointUpdate { url, events, description, enabled: _ } = parse_common(request, rules)?;
        let url = url.ok_or_else(|| Fault::BadRequest(Field::new("url", "", URL)))?;
        Ok(Self { url, events: events.unwrap_or_default(), description: description.unwrap_or_default() })
    }
}

impl EndpointUpdate {
    /// Validates an update in the order mask, body, url, events, description, status.
    ///
    /// # Errors
    /// As [`Registration::parse`].
    pub fn parse(request: &EndpointRequest, rules: EndpointRules<'_>) -> Result<Self, Fault> {
        reject_unparsed(request, "update_mask", "made of `url`, `events`, `description` and `status`")?;
        let change = parse_common(request, rules)?;
        let allowed = "\"enabled\" or \"disabled\"";
        reject_unparsed(request, "status", allowed)?;
        let enabled = match request.status.as_deref() {
            None => None,
            Some("enabled") => Some(true),
            Some("disabled") => Some(false),
            Some(other) => return Err(Fault::BadRequest(Field::new("status", &format!("\"{other}\""), allowed))),
        };
        Ok(Self { enabled, ..change })
    }
}

fn parse_common(request: &EndpointRequest, rules: EndpointRules<'_>) -> Result<EndpointUpdate, Fault> {
    reject_unparsed(request, "body", "a JSON object")?;
    reject_unparsed(request, "url", URL)?;
    let url = request.url.as_deref().map(|url| parse_url(url, rules)).transpose()?;

    let known = Event::SUBSCRIBABLE.map(|event| format!("\"{}\"", event.as_str())).join(", ");
    let allowed = format!("a list of {known}, or [\"*\"]");
    reject_unparsed(request, "events", &allowed)?;
    let events = request.events.as_deref().map(Events::parse).transpose();
    let events = events.map_err(|word| Fault::BadRequest(Field::new("events", &format!("\"{word}\""), allowed)))?;

    let allowed = format!("a text of at most {DESCRIPTION_CHARS} characters, without NUL");
    reject_unparsed(request, "description", &allowed)?;
    let description = request.description.clone();
    if let Some(text) = &description {
        let length = text.chars().count();
        let seen = match text.contains('\0') {
            true => Some("a NUL".to_owned()),
            false => (length > DESCRIPTION_CHARS).then(|| format!("{length} characters")),
        };
        if let Some(seen) = seen {
            return Err(Fault::BadRequest(Field::new("description", &seen, allowed)));
        }
    }
    Ok(EndpointUpdate { url, events, description, enabled: None })
}

fn parse_url(text: &str, rules: EndpointRules<'_>) -> Result<TargetUrl, Fault> {
    let url = check_url(text, rules.policy)?;
    match url.is_https() || rules.allow_http {
        true => Ok(url),
        false => Err(Fault::BadRequest(Field::new("url", &format!("\"{text}\""), URL))),
    }
}

fn reject_unparsed(request: &EndpointRequest, name: &'static str, allowed: &str) -> Result<(), Fault> {
    match request.unparsed.iter().find(|(field, _)| field == name) {
        Some((_, seen)) => Err(Fault::BadRequest(Field::new(name, seen, allowed))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    fn validation_error(request: &EndpointRequest, allow_http: bool) -> Option<(Code, &'static str)> {
        let policy = Policy::default();
        let rules = EndpointRules { policy: &policy, allow_http };
        let fault = EndpointUpdate::parse(request, rules).err()?;
        Some((fault.code(), fault.field()?.name))
    }

    #[test]
    fn url_must_be_public_https_without_credentials() {
        for (url, allow_http, expected) in [
            ("https://example.com/hooks?x=1", false, None),
            ("https://example.com:8443/", false, None),
            ("http://example.com/", true, None),
            ("http://example.com/", false, Some(Code::BadRequest)),
            ("https://user:word@example.com/", false, Some(Code::BadRequest)),
            ("ftp://example.com/", true, Some(Code::BadRequest)),
            ("example.com", false, Some(Code::BadRequest)),
            ("", false, Some(Code::BadRequest)),
            ("https://127.0.0.1/", false, Some(Code::SsrfDetected)),
            ("https://[::ffff:10.0.0.1]/", false, Some(Code::SsrfDetected)),
            ("https://169.254.169.254/", false, Some(Code::SsrfDetected)),
            ("https://hooks.internal/", false, Some(Code::SsrfDetected)),
            ("http://127.0.0.1/", true, Some(Code::SsrfDetected)),
        ] {
            let request = EndpointRequest { url: Some(url.into()), ..EndpointRequest::default() };
            assert_eq!(validation_error(&request, allow_http), expected.map(|code| (code, "url")), "{url}");
        }
    }

    #[test]
    fn validation_reports_the_first_invalid_field_in_order() {
        let mut request = EndpointRequest {
            url: Some("nothing".into()),
            events: Some(vec!["grab.lost".into()]),
            description: Some("é".repeat(201)),
            status: Some("paused".into()),
            unparsed: vec![("body".into(), "[]".into())],
        };
        let bad = |name| Some((Code::BadRequest, name));
        assert_eq!(validation_error(&request, false), bad("body"));
        request.unparsed.clear();
        assert_eq!(validation_error(&request, false), bad("url"));
        request.url = None;
        assert_eq!(validation_error(&request, false), bad("events"));
        request.events = None;
        assert_eq!(validation_error(&request, false), bad("description"));
        request.description = Some("a\0".to_owned());
        assert_eq!(validation_error(&request, false), bad("description"));
        request.description = Some("é".repeat(200));
        assert_eq!(validation_error(&request, false), bad("status"));
        request.status = Some("disabled".into());
        assert_eq!(validation_error(&request, false), None);
        for name in ["update_mask", "body", "url", "events", "description", "status"] {
            let request = EndpointRequest { unparsed: vec![(name.into(), "5".into())], ..EndpointRequest::default() };
            assert_eq!(validation_error(&request, false), bad(name));
        }
    }

    #[test]
    fn registration_requires_only_a_url() {
        let policy = Policy::default();
        let rules = EndpointRules { policy: &policy, allow_http: false };
        let missing = Registration::parse(&EndpointRequest::default(), rules).unwrap_err();
        assert_eq!(missing.field().map(|field| field.name), Some("url"));
        let request = EndpointRequest { url: Some("https://Example.com".into()), ..EndpointRequest::default() };
        let registration = Registration::parse(&request, rules).unwrap();
        assert_eq!(registration.url.as_str(), "https://example.com/");
        assert_eq!((registration.events, registration.description), (Events::all(), String::new()));
    }
}
