//! What a page must show, or must not show, to be captured.

use grabd_options::CaptureRequest;

use super::{RequestRule, Selector, request_rules};

/// What is waited for besides elements, and what a capture fails with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conditions {
    /// The capture fails if an element that matches this is visible.
    pub fail_if_selector: Option<Selector>,
    /// The capture fails if the page shows this text.
    pub fail_if_text: Option<String>,
    /// Wait until the page shows this text.
    pub wait_for_text: Option<String>,
    /// The capture fails if the image has one colour.
    pub fail_if_blank: bool,
    /// Wait until this JavaScript expression is true.
    pub wait_for_expression: Option<String>,
    /// The capture fails if a request of the page fails in one of these ways.
    pub fail_on_request: Vec<RequestRule>,
    /// Wait until the page says that it is ready.
    pub wait_for_signal: bool,
}

impl Conditions {
    /// `None` if a rule about requests is invalid.
    pub(super) fn of(request: &CaptureRequest) -> Option<Self> {
        Some(Self {
            fail_if_selector: request.fail_if_selector.clone().map(Selector),
            fail_if_text: request.fail_if_text.clone(),
            wait_for_text: request.wait_for_text.clone(),
            fail_if_blank: request.fail_if_blank.unwrap_or(false),
            wait_for_expression: request.wait_for_expression.clone(),
            fail_on_request: request_rules::read(request.fail_on_request.as_deref().unwrap_or_default())?,
            wait_for_signal: request.wait_for_signal.unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::CaptureSpec;

    #[test]
    fn conditions_are_stored_unless_they_ask_for_nothing() {
        let request = |change: fn(&mut CaptureRequest)| {
            let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
            change(&mut request);
            request
        };
        let plain = CaptureSpec::parse(&request(|r| {
            (r.fail_if_blank, r.wait_for_signal, r.fail_on_request) = (Some(false), Some(false), Some(Vec::new()));
        }))
        .unwrap();
        assert_eq!(plain.conditions, Conditions::default());
        let without = CaptureSpec::parse(&request(|_| ())).unwrap();
        assert_eq!(serde_json::to_string(&plain).unwrap(), serde_json::to_string(&without).unwrap());
        assert!(!serde_json::to_string(&plain).unwrap().contains("fail_"));
        let all = CaptureSpec::parse(&request(|r| {
            (r.fail_if_selector, r.fail_if_text) = (Some(".error".into()), Some("Not found".into()));
            (r.wait_for_text, r.fail_if_blank) = (Some("Total".into()), Some(true));
            (r.wait_for_expression, r.wait_for_signal) = (Some("a > 1".into()), Some(true));
        }))
        .unwrap();
        let stored = serde_json::to_string(&all).unwrap();
        assert!(
            stored.ends_with(
                r#""fail_if_selector":".error","fail_if_text":"Not found","wait_for_text":"Total","fail_if_blank":true,"wait_for_expression":"a > 1","wait_for_signal":true}"#
            ),
            "{stored}"
        );
        assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), all);
        for refused in
            [request(|r| r.fail_if_text = Some(" ".into())), request(|r| r.wait_for_text = Some("a\nb".into()))]
        {
            assert!(CaptureSpec::parse(&refused).is_err(), "{refused:?}");
        }
        let silent = request(|r| (r.wait_for_signal, r.javascript) = (Some(true), Some(false)));
        assert_eq!(CaptureSpec::parse(&silent).unwrap_err().field().unwrap().name, "wait_for_signal");
    }
}
