//! Requests that are paused before they are sent: some are blocked, and those to the target's origin get the caller's
//! headers.
//!
//! All uses of the browser's `Fetch` domain are here, because each call replaces the patterns of the one before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide::cdp::browser_protocol::fetch::{
    self, ContinueRequestParams, FailRequestParams, FulfillRequestParams, HeaderEntry, RequestPattern,
};
use chromiumoxide::cdp::browser_protocol::network::{ErrorReason, ResourceType};
use chromiumoxide::cdp::browser_protocol::page::AddScriptToEvaluateOnNewDocumentParams;
use grabd_domain::capture::{BasicAuth, CaptureSpec, RequestType, Secrets};
use url::{Origin, Url};

use super::tab::Tab;
use super::watch::PausedRequest;
use crate::cdp::CallError;
use crate::lists::Blocklist;

/// WebSockets are not paused, so scripts get none.
const NO_SOCKETS: &str = include_str!("scripts/no_sockets.js");

/// What happens to a paused request.
#[derive(Debug, PartialEq)]
enum Decision {
    Fail(ErrorReason),
    Continue,
    /// Is sent with these headers instead of its own.
    ContinueWith(Vec<HeaderEntry>),
    /// Is answered with the document of the caller, and not sent.
    Fulfill,
}

/// The rules for the requests of one grab.
pub(super) struct Interception<'a> {
    spec: &'a CaptureSpec,
    target: Option<Url>,
    /// Headers for the target's origin. Names are in lower case.
    headers: Vec<(String, String)>,
    blocked_fonts: AtomicU32,
    blocklist: Option<Arc<Blocklist>>,
}

impl<'a> Interception<'a> {
    pub(super) fn new(spec: &'a CaptureSpec, blocklist: Option<Arc<Blocklist>>) -> Self {
        let Secrets { headers, basic_auth, .. } = &spec.secrets;
        let mut headers = headers.clone();
        if let Some(BasicAuth { username, password }) = basic_auth {
            let credentials = STANDARD.encode(format!("{username}:{password}"));
            headers.push(("authorization".to_owned(), format!("Basic {credentials}")));
        }
        let target = Url::parse(spec.url.as_str()).ok();
        Self { spec, target, headers, blocked_fonts: AtomicU32::new(0), blocklist }
    }

    /// The number of blocked requests for fonts.
    pub(super) fn blocked_fonts(&self) -> u32 {
        self.blocked_fonts.load(Ordering::Relaxed)
    }

    /// Sets which requests are paused. Does nothing if none are.
    ///
    /// # Errors
    /// If the browser does not answer.
    pub(super) async fn apply(&self, tab: &Tab, navigation_blocked: bool) -> Result<(), CallError> {
        let (client, session) = (&tab.client, Some(tab.session.as_str()));
        let patterns = self.patterns(navigation_blocked);
        if !patterns.is_empty() {
            let enable = fetch::EnableParams { patterns: Some(patterns), ..fetch::EnableParams::default() };
            client.call(session, enable).await?;
        }
        if self.spec.blocking.has_type(RequestType::Websocket) && !navigation_blocked {
            client.call(session, AddScriptToEvaluateOnNewDocumentParams::new(NO_SOCKETS)).await?;
        }
        Ok(())
    }

    fn patterns(&self, navigation_blocked: bool) -> Vec<RequestPattern> {
        let of_type = |of| RequestPattern { resource_type: Some(of), ..RequestPattern::default() };
        let of_url = |url: String| RequestPattern { url_pattern: Some(url), ..RequestPattern::default() };
        let escaped = |url: &str| url.replace('\\', r"\\").replace('?', r"\?");
        let blocking = &self.spec.blocking;
        let mut patterns: Vec<RequestPattern> =
            blocking.types.iter().flat_map(|of| resource_types(*of)).map(|of| of_type(of.clone())).collect();
        patterns.extend(blocking.urls.iter().map(|url| of_url(escaped(url))));
        if let Some(target) = self.target.as_ref().filter(|_| !self.headers.is_empty()) {
            patterns.push(of_url(format!("{}/*", target.origin().ascii_serialization())));
        }
        if let Some(target) = self.own_document() {
            let resource_type = Some(ResourceType::Document);
            patterns.push(RequestPattern { resource_type, ..of_url(escaped(&target).replace('*', r"\*")) });
        }
        // Before the host of a main document can be refused.
        if navigation_blocked || self.blocklist.as_ref().is_some_and(|list| list.has_lists()) {
            patterns.push(of_type(ResourceType::Document));
        }
        patterns
    }

    /// The URL whose document is that of the caller, as requests have it. None if the document is on the web.
    fn own_document(&self) -> Option<String> {
        let mut target = self.target.clone().filter(|_| self.spec.secrets.html.is_some())?;
        target.set_fragment(None);
        Some(target.into())
    }

    /// Answers a paused request.
    pub(super) async fn answer(&self, tab: &Tab, paused: PausedRequest) {
        let (navigation_blocked, shown): (bool, Vec<Origin>) = tab.watch.read(|seen| {
            let urls = seen.document.iter().map(|of| &of.url).chain(seen.navigation.iter().map(|of| &of.url));
            (seen.navigation_blocked, urls.filter_map(|url| Url::parse(url).ok()).map(|url| url.origin()).collect())
        });
        let decision = self.decide(&paused, navigation_blocked, &shown);
        let (client, session) = (&tab.client, Some(tab.session.as_str()));
        match decision {
            Decision::Fail(reason) => client.send(session, &FailRequestParams::new(paused.request, reason)).await,
            Decision::Continue => client.send(session, &ContinueRequestParams::new(paused.request)).await,
            Decision::ContinueWith(headers) => {
                let params =
                    ContinueRequestParams { headers: Some(headers), ..ContinueRequestParams::new(paused.request) };
                client.send(session, &params).await;
            }
            Decision::Fulfill => {
                let html = self.spec.secrets.html.as_deref().unwrap_or_default();
                let params = FulfillRequestParams {
                    response_headers: Some(vec![HeaderEntry::new("Content-Type", "text/html; charset=utf-8")]),
                    body: Some(STANDARD.encode(html).into()),
                    ..FulfillRequestParams::new(paused.request, 200)
                };
                client.send(session, &params).await;
            }
        }
    }

    /// `shown` are the origins of the document in the main frame and of the one that is about to replace it.
    fn decide(&self, paused: &PausedRequest, navigation_blocked: bool, shown: &[Origin]) -> Decision {
        let is_document = paused.kind == "Document";
        if is_document && navigation_blocked {
            return Decision::Fail(ErrorReason::Aborted);
        }
        if is_document && paused.is_main && self.own_document().is_some_and(|target| target == paused.url) {
            return Decision::Fulfill;
        }
        let blocking = &self.spec.blocking;
        let is_blocked = request_type(&paused.kind).is_some_and(|of| blocking.has_type(of));
        if !(is_document && paused.is_main) && (is_blocked || blocking.has_url(&paused.url)) {
            if paused.kind == "Font" {
                self.blocked_fonts.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(blocklist) = &self.blocklist {
                blocklist.count_asked();
            }
            return Decision::Fail(ErrorReason::BlockedByClient);
        }
        if let Some(blocklist) = &self.blocklist {
            if is_document && paused.is_main {
                blocklist.add_document(&paused.url);
            } else if blocklist.blocks_url(&paused.url, &paused.kind) {
                return Decision::Fail(ErrorReason::BlockedByClient);
            }
        }
        let Some(target) = self.target.as_ref().map(Url::origin) else { return Decision::Continue };
        let is_to_target = Url::parse(&paused.url).is_ok_and(|url| url.origin() == target);
        // A page or a frame of another origin, for example after a redirect, cannot act in the caller's name. Frames are
        // recognized by the referrer, which they can leave out but not forge.
        let referrer = paused.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("referer"));
        let is_own_frame = || referrer.is_some_and(|(_, url)| Url::parse(url).is_ok_and(|url| url.origin() == target));
        let is_from_target = match (is_document, paused.is_main) {
            (true, true) => true,
            (_, is_main) => shown.contains(&target) && (is_main || is_own_frame()),
        };
        if self.headers.is_empty() || !is_to_target || !is_from_target {
            return Decision::Continue;
        }
        let is_replaced = |name: &str| self.headers.iter().any(|(of, _)| of.eq_ignore_ascii_case(name));
        let own = paused.headers.iter().filter(|(name, _)| !is_replaced(name));
        let all = own.chain(&self.headers).map(|(name, value)| HeaderEntry::new(name.clone(), value.clone()));
        Decision::ContinueWith(all.collect())
    }
}

/// The browser's names of a type. WebSockets are not paused, so they have none.
fn resource_types(of: RequestType) -> &'static [ResourceType] {
    match of {
        RequestType::Image => &[ResourceType::Image],
        RequestType::Media => &[ResourceType::Media],
        RequestType::Font => &[ResourceType::Font],
        RequestType::Stylesheet => &[ResourceType::Stylesheet],
        RequestType::Script => &[ResourceType::Script],
        RequestType::Xhr => &[ResourceType::Xhr, ResourceType::Fetch, ResourceType::EventSource],
        RequestType::Frame => &[ResourceType::Document],
        RequestType::Websocket => &[],
    }
}

fn request_type(name: &str) -> Option<RequestType> {
    RequestType::ALL.into_iter().find(|of| resource_types(*of).iter().any(|of| of.as_ref() == name))
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, OptionValue, Secret};

    use super::*;

    fn spec(change: impl FnOnce(&mut CaptureRequest)) -> CaptureSpec {
        let mut request = CaptureRequest { url: Some("https://a.example/x?y".into()), ..CaptureRequest::default() };
        change(&mut request);
        CaptureSpec::parse(&request).unwrap()
    }

    fn paused(kind: &str, url: &str, is_main: bool) -> PausedRequest {
        let headers = vec![("Accept".to_owned(), "*/*".to_owned()), ("User-Agent".to_owned(), "x".to_owned())];
        PausedRequest { request: "1".to_owned(), url: url.to_owned(), kind: kind.to_owned(), is_main, headers }
    }

    fn decide(spec: &CaptureSpec, paused: &PausedRequest, shown: &str) -> Decision {
        Interception::new(spec, None).decide(paused, false, &[Url::parse(shown).unwrap().origin()])
    }

    #[test]
    fn blocked_requests_fail_and_the_document_does_not() {
        let spec = spec(|r| {
            r.block_types = Some(vec!["font".into(), "xhr".into(), "frame".into()]);
            r.block_urls = Some(vec!["*/ads/*".into()]);
        });
        for (kind, url, is_main, is_blocked) in [
            ("Document", "https://a.example/ads/", true, false),
            ("Document", "https://a.example/", false, true),
            ("Font", "https://a.example/f", true, true),
            ("Fetch", "https://a.example/f", true, true),
            ("XHR", "https://a.example/f", true, true),
            ("Image", "https://a.example/f", true, false),
            ("Image", "https://b.example/ads/f", true, true),
        ] {
            let decision = decide(&spec, &paused(kind, url, is_main), "https://a.example/");
            let expected = if is_blocked { Decision::Fail(ErrorReason::BlockedByClient) } else { Decision::Continue };
            assert_eq!(decision, expected, "{kind} {url}");
        }
        let held = Interception::new(&spec, None).decide(&paused("Document", "https://a.example/", true), true, &[]);
        assert_eq!(held, Decision::Fail(ErrorReason::Aborted));
    }

    #[test]
    fn headers_are_sent_from_and_to_the_origin_of_the_target_only() {
        let header = |value: &str| OptionValue::Text(value.to_owned());
        let spec = spec(|r| {
            r.headers = Some(Secret([("Accept".to_owned(), header("b")), ("X-Token".to_owned(), header("c"))].into()));
            let members = [("username".to_owned(), header("me")), ("password".to_owned(), header("p"))];
            r.basic_auth = Some(Secret(members.into()));
        });
        let here = "https://a.example/";
        for (kind, url, is_main, shown, is_sent) in [
            ("Document", "https://a.example/", true, "about:blank", true),
            ("Document", "https://a.example:443/z", true, "https://b.example/", true),
            ("Image", "https://a.example/i", true, here, true),
            ("Image", "https://a.example/i", true, "https://b.example/", false),
            ("Document", "https://a.example/", false, "https://b.example/", false),
            ("Image", "https://a.example/i", false, here, false),
            ("Document", "http://a.example/", true, here, false),
            ("Document", "https://a.example:8443/", true, here, false),
            ("Document", "https://www.a.example/", true, here, false),
            ("Image", "https://b.example/i", true, here, false),
        ] {
            match decide(&spec, &paused(kind, url, is_main), shown) {
                Decision::ContinueWith(headers) => {
                    assert!(is_sent, "{url} from {shown}");
                    let sent: Vec<_> = headers.iter().map(|of| (of.name.as_str(), of.value.as_str())).collect();
                    let expected = [("accept", "b"), ("x-token", "c"), ("authorization", "Basic bWU6cA==")];
                    assert_eq!(sent, [&[("User-Agent", "x")][..], &expected].concat());
                }
                decision @ (Decision::Continue | Decision::Fail(_) | Decision::Fulfill) => {
                    assert!(!is_sent && decision == Decision::Continue, "{url} from {shown}");
                }
            }
        }
    }

    #[test]
    fn headers_are_sent_for_frames_of_the_target_only() {
        let header = OptionValue::Text("hidden".to_owned());
        let spec = spec(|r| r.headers = Some(Secret([("X-Token".to_owned(), header)].into())));
        for (referrer, is_sent) in [("https://a.example/frame", true), ("https://b.example/", false), ("", false)] {
            let mut framed = paused("Image", "https://a.example/i", false);
            framed.headers.push(("Referer".to_owned(), referrer.to_owned()));
            let decision = decide(&spec, &framed, "https://a.example/");
            assert_eq!(matches!(decision, Decision::ContinueWith(_)), is_sent, "{referrer}");
        }
    }

    #[test]
    fn only_the_main_document_at_the_base_url_is_that_of_the_caller() {
        let base_url = Some("https://a.example/x*?y#part".to_owned());
        let request = CaptureRequest { html: Some(Secret("<p>".into())), base_url, ..CaptureRequest::default() };
        let spec = CaptureSpec::parse(&request).unwrap();
        let patterns = Interception::new(&spec, None).patterns(false);
        assert_eq!(patterns.len(), 1);
        assert_eq!(patterns[0].url_pattern.as_deref(), Some(r"https://a.example/x\*\?y"));
        for (kind, url, is_main, is_own) in [
            ("Document", "https://a.example/x*?y", true, true),
            ("Document", "https://a.example/x*?y", false, false),
            ("Document", "https://a.example/x", true, false),
            ("Fetch", "https://a.example/x*?y", true, false),
        ] {
            let decision = decide(&spec, &paused(kind, url, is_main), "https://a.example/");
            assert_eq!(decision == Decision::Fulfill, is_own, "{kind} {url}");
        }
    }

    #[test]
    fn only_what_is_needed_is_paused() {
        let patterns = |spec: &CaptureSpec, blocked| Interception::new(spec, None).patterns(blocked).len();
        assert_eq!((patterns(&spec(|_| ()), false), patterns(&spec(|_| ()), true)), (0, 1));
        let sockets = spec(|r| r.block_types = Some(vec!["websocket".into()]));
        assert_eq!(patterns(&sockets, false), 0);
        let urls = spec(|r| r.block_urls = Some(vec!["*?a".into()]));
        assert_eq!(Interception::new(&urls, None).patterns(false)[0].url_pattern.as_deref(), Some(r"*\?a"));
    }
}
