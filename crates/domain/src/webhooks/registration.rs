//! What may be registered: the rules of a request to register or to change an endpoint.

use crate::address::Policy;
use crate::faults::{Fault, Field};
use crate::target::{TargetUrl, check_url};
use crate::webhooks::{DESCRIPTION_CHARS, Event, Events};

/// A request to register or change an endpoint as it came over a wire: only what is there is meant.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the wire's own names")]
pub struct Request {
    pub url: Option<String>,
    pub events: Option<Vec<String>>,
    pub description: Option<String>,
    pub status: Option<String>,
    /// Fields whose value had the wrong type on the wire it came by, with what was seen there.
    pub unparsed: Vec<(String, String)>,
}

/// What the operator decides about endpoints.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Which addresses may be reached.
    pub policy: &'a Policy,
    /// May messages go over plain http? For development.
    pub allow_http: bool,
}

/// An endpoint to register.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the endpoint's own names")]
pub struct Registration {
    pub url: TargetUrl,
    pub events: Events,
    pub description: String,
}

/// What to change of an endpoint; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the endpoint's own names")]
pub struct Change {
    pub url: Option<TargetUrl>,
    pub events: Option<Events>,
    pub description: Option<String>,
    /// Does it get messages?
    pub enabled: Option<bool>,
}

const URL: &str = "an https URL of a public address";

impl Registration {
    /// Judges a request to register, in the order body, url, events, description. A status is ignored: an endpoint
    /// begins enabled.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] and [`Fault::SsrfDetected`], with the first field that cannot be accepted.
    pub fn parse(request: &Request, rules: Rules<'_>) -> Result<Self, Fault> {
        let Change { url, events, description, enabled: _ } = parts(request, rules)?;
        let url = url.ok_or_else(|| Fault::BadRequest(Field::new("url", "", URL)))?;
        Ok(Self { url, events: events.unwrap_or_default(), description: description.unwrap_or_default() })
    }
}

impl Change {
    /// Judges a request to change, in the order mask, body, url, events, description, status.
    ///
    /// # Errors
    /// As [`Registration::parse`].
    pub fn parse(request: &Request, rules: Rules<'_>) -> Result<Self, Fault> {
        unparsed(request, "update_mask", "made of `url`, `events`, `description` and `status`")?;
        let change = parts(request, rules)?;
        let allowed = "\"enabled\" or \"disabled\"";
        unparsed(request, "status", allowed)?;
        let enabled = match request.status.as_deref() {
            None => None,
            Some("enabled") => Some(true),
            Some("disabled") => Some(false),
            Some(other) => return Err(Fault::BadRequest(Field::new("status", &format!("\"{other}\""), allowed))),
        };
        Ok(Self { enabled, ..change })
    }
}

fn parts(request: &Request, rules: Rules<'_>) -> Result<Change, Fault> {
    unparsed(request, "body", "a JSON object")?;
    unparsed(request, "url", URL)?;
    let url = request.url.as_deref().map(|url| check(url, rules)).transpose()?;

    let known = Event::SUBSCRIBABLE.map(|event| format!("\"{}\"", event.as_str())).join(", ");
    let allowed = format!("a list of {known}, or [\"*\"]");
    unparsed(request, "events", &allowed)?;
    let events = request.events.as_deref().map(Events::parse).transpose();
    let events = events.map_err(|word| Fault::BadRequest(Field::new("events", &format!("\"{word}\""), allowed)))?;

    let allowed = format!("a text of at most {DESCRIPTION_CHARS} characters, without NUL");
    unparsed(request, "description", &allowed)?;
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
    Ok(Change { url, events, description, enabled: None })
}

fn check(text: &str, rules: Rules<'_>) -> Result<TargetUrl, Fault> {
    let url = check_url(text, rules.policy)?;
    match url.is_https() || rules.allow_http {
        true => Ok(url),
        false => Err(Fault::BadRequest(Field::new("url", &format!("\"{text}\""), URL))),
    }
}

fn unparsed(request: &Request, name: &'static str, allowed: &str) -> Result<(), Fault> {
    match request.unparsed.iter().find(|(field, _)| field == name) {
        Some((_, seen)) => Err(Fault::BadRequest(Field::new(name, seen, allowed))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    fn judged(request: &Request, allow_http: bool) -> Option<(Code, &'static str)> {
        let policy = Policy::default();
        let rules = Rules { policy: &policy, allow_http };
        let fault = Change::parse(request, rules).err()?;
        Some((fault.code(), fault.field()?.name))
    }

    #[test]
    fn only_public_https_addresses_without_credentials() {
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
            let request = Request { url: Some(url.into()), ..Request::default() };
            assert_eq!(judged(&request, allow_http), expected.map(|code| (code, "url")), "{url}");
        }
    }

    #[test]
    fn fields_are_judged_in_their_order() {
        let mut request = Request {
            url: Some("nothing".into()),
            events: Some(vec!["grab.lost".into()]),
            description: Some("é".repeat(201)),
            status: Some("paused".into()),
            unparsed: vec![("body".into(), "[]".into())],
        };
        let bad = |name| Some((Code::BadRequest, name));
        assert_eq!(judged(&request, false), bad("body"));
        request.unparsed.clear();
        assert_eq!(judged(&request, false), bad("url"));
        request.url = None;
        assert_eq!(judged(&request, false), bad("events"));
        request.events = None;
        assert_eq!(judged(&request, false), bad("description"));
        request.description = Some("a\0".to_owned());
        assert_eq!(judged(&request, false), bad("description"));
        request.description = Some("é".repeat(200));
        assert_eq!(judged(&request, false), bad("status"));
        request.status = Some("disabled".into());
        assert_eq!(judged(&request, false), None);
        for name in ["update_mask", "body", "url", "events", "description", "status"] {
            let request = Request { unparsed: vec![(name.into(), "5".into())], ..Request::default() };
            assert_eq!(judged(&request, false), bad(name));
        }
    }

    #[test]
    fn a_registration_needs_a_url_and_nothing_else() {
        let policy = Policy::default();
        let rules = Rules { policy: &policy, allow_http: false };
        let missing = Registration::parse(&Request::default(), rules).unwrap_err();
        assert_eq!(missing.field().map(|field| field.name), Some("url"));
        let request = Request { url: Some("https://Example.com".into()), ..Request::default() };
        let registration = Registration::parse(&request, rules).unwrap();
        assert_eq!(registration.url.as_str(), "https://example.com/");
        assert_eq!((registration.events, registration.description), (Events::all(), String::new()));
    }
}
