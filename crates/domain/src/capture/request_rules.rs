//! Requests of the page with which a capture fails.

use grabd_options::{FAILURE_STATUSES, NO_ANSWER, Object, Value};

use super::network;
use super::page::FailureStatus;

/// Requests with which a capture fails: those to some URLs that failed in some way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestRule {
    /// Pattern of the URLs.
    url: String,
    failure: RequestFailure,
}

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RequestFailure {
    Any,
    NoAnswer,
    Status(FailureStatus),
}

impl RequestRule {
    fn of(object: &Object) -> Option<Self> {
        let text = |name: &str| match object.get(name) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let failure = match text("status") {
            None if object.contains_key("status") => return None,
            None => RequestFailure::Any,
            Some(NO_ANSWER) => RequestFailure::NoAnswer,
            Some(status) => RequestFailure::Status(FailureStatus::parse(status)?),
        };
        Some(Self { url: text("url")?.to_owned(), failure })
    }

    fn to_object(&self) -> Object {
        let status = match self.failure {
            RequestFailure::Any => None,
            RequestFailure::NoAnswer => Some(NO_ANSWER.to_owned()),
            RequestFailure::Status(status) => Some(status.to_string()),
        };
        let members = [("url", Some(self.url.clone())), ("status", status)];
        members.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::Text(text?)))).collect()
    }

    /// Whether the rule is about requests to this URL.
    pub fn has_url(&self, url: &str) -> bool {
        network::matches(&self.url, url)
    }

    /// Whether the capture fails with a request to this URL. `status` is that of its answer, if there is one.
    pub fn fails_with(&self, url: &str, status: Option<u16>) -> bool {
        let is_failure = match (self.failure, status) {
            (RequestFailure::Any, Some(status)) => FAILURE_STATUSES.contains(&status),
            (RequestFailure::Any | RequestFailure::NoAnswer, None) => true,
            (RequestFailure::NoAnswer, Some(_)) | (RequestFailure::Status(_), None) => false,
            (RequestFailure::Status(of), Some(status)) => of.has(status),
        };
        is_failure && self.has_url(url)
    }
}

/// The rules of valid objects. `None` if a member is missing or impossible.
pub(super) fn read(objects: &[Object]) -> Option<Vec<RequestRule>> {
    objects.iter().map(RequestRule::of).collect()
}

/// What [`read`] reads. `None` if there are none.
pub(super) fn to_objects(rules: &[RequestRule]) -> Option<Vec<Object>> {
    (!rules.is_empty()).then(|| rules.iter().map(RequestRule::to_object).collect())
}

#[cfg(test)]
mod tests {
    use crate::capture::{CaptureRequest, CaptureSpec};
    use crate::faults::Fault;

    fn parse(json: &str) -> Result<CaptureSpec, Fault> {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        assert!(request.set("fail_on_request", serde_json::from_str(json).unwrap()), "{json}");
        CaptureSpec::parse(&request)
    }

    #[test]
    fn rules_are_stored_in_their_order() {
        let spec = parse(
            r#"[{"url": "*/api/*", "status": "5xx"}, {"url": "*.js", "status": "failed"}, {"url": "*", "status": "404"}, {"url": "a"}]"#,
        )
        .unwrap();
        let stored = serde_json::to_string(&spec).unwrap();
        let tail = r#""fail_on_request":[{"status":"5xx","url":"*/api/*"},{"status":"failed","url":"*.js"},{"status":"404","url":"*"},{"url":"a"}]}"#;
        assert!(stored.ends_with(tail), "{stored}");
        assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), spec);
        assert!(!serde_json::to_string(&parse("[]").unwrap()).unwrap().contains("fail_on_request"));
    }

    #[test]
    fn rule_is_about_urls_and_failures() {
        let api = "https://example.com/api/a?b";
        for (rule, url, status, fails) in [
            (r#"{"url": "*/api/*"}"#, api, Some(500), true),
            (r#"{"url": "*/api/*"}"#, api, Some(404), true),
            (r#"{"url": "*/api/*"}"#, api, None, true),
            (r#"{"url": "*/api/*"}"#, api, Some(200), false),
            (r#"{"url": "*/api/*"}"#, api, Some(304), false),
            (r#"{"url": "*/api/*"}"#, "https://example.com/app", Some(500), false),
            (r#"{"url": "*/api/a"}"#, api, Some(500), false),
            (r#"{"url": "*", "status": "5xx"}"#, api, Some(503), true),
            (r#"{"url": "*", "status": "5xx"}"#, api, Some(404), false),
            (r#"{"url": "*", "status": "5xx"}"#, api, None, false),
            (r#"{"url": "*", "status": "404"}"#, api, Some(404), true),
            (r#"{"url": "*", "status": "404"}"#, api, Some(410), false),
            (r#"{"url": "*", "status": "failed"}"#, api, None, true),
            (r#"{"url": "*", "status": "failed"}"#, api, Some(500), false),
        ] {
            let spec = parse(&format!("[{rule}]")).unwrap();
            assert_eq!(spec.conditions.fail_on_request[0].fails_with(url, status), fails, "{rule} {url} {status:?}");
        }
    }

    #[test]
    fn invalid_rules_are_refused() {
        let many = format!("[{}]", [r#"{"url": "a"}"#; 21].join(","));
        let long = format!(r#"[{{"url": "{}"}}]"#, "x".repeat(513));
        for json in [
            r#"[{"status": "5xx"}]"#,
            r#"[{"url": " "}]"#,
            r#"[{"url": "*", "status": "3xx"}]"#,
            r#"[{"url": "*", "status": 404}]"#,
            r#"[{"url": "*", "method": "GET"}]"#,
            &long,
            &many,
        ] {
            let fault = parse(json).unwrap_err();
            assert_eq!(fault.field().unwrap().name, "fail_on_request", "{json}: {fault}");
        }
    }
}
