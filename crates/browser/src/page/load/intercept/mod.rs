//! Requests that are paused before they are sent: some are blocked, documents of some domains are not loaded, requests to the
//! target's origin get the caller's headers, and those for documents are signed in the name of the service.
//!
//! All uses of the browser's `Fetch` domain are here, because each call replaces the patterns of the one before.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide::cdp::browser_protocol::fetch::{
    self, ContinueRequestParams, FailRequestParams, FulfillRequestParams, HeaderEntry, RequestPattern, RequestStage,
};
use chromiumoxide::cdp::browser_protocol::network::{ErrorReason, ResourceType};
use chromiumoxide::cdp::browser_protocol::page::AddScriptToEvaluateOnNewDocumentParams;
use grabd_domain::capture::{BasicAuth, CaptureSpec, RequestType, Secrets};
use grabd_domain::domains::DomainRules;
use grabd_domain::identity::SignatureFields;
use grabd_domain::render::RequestSigner;
use url::{Origin, Url};

use crate::blocklists::Blocklist;
use crate::cdp::{CallError, PausedRequest};
use crate::page::load::watch::{DocumentOrigin, WatchState};
use crate::page::tab::Tab;

/// WebSockets are not paused, so scripts get none.
const NO_SOCKETS: &str = include_str!("../../scripts/no_sockets.js");

/// The document in which a PDF is drawn.
const PDF_DOCUMENT: &str = "<!doctype html><meta name=\"viewport\" content=\"width=device-width\">\
    <style>html,body{margin:0}canvas{display:block;width:100%}</style><body>";

/// It may load the PDF, and run no scripts. Our own run nevertheless; images in a PDF may need WebAssembly.
const PDF_POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; \
    script-src 'wasm-unsafe-eval'; img-src blob: data:; font-src blob: data:";

/// What happens to a paused request.
#[derive(Debug, PartialEq)]
enum Decision {
    Fail(ErrorReason),
    Continue,
    /// Is sent with these headers instead of its own.
    ContinueWith(Vec<HeaderEntry>),
    /// Is answered with the document of the caller, and not sent.
    Fulfill,
    /// Is answered with the document in which a PDF is drawn, and not sent.
    FulfillPdf {
        /// The HTTP status of the PDF.
        status: u16,
    },
}

/// The rules for the requests of one grab.
pub(in crate::page) struct Interception<'a> {
    spec: &'a CaptureSpec,
    target: Option<Url>,
    /// Headers for the target's origin. Names are in lower case.
    headers: Vec<(String, String)>,
    blocked_fonts: AtomicU32,
    blocklist: Option<Arc<Blocklist>>,
    /// The domains whose documents may be loaded.
    domains: Arc<DomainRules>,
    /// Whether a document is not shown if its site asks for that.
    respect_opt_out: bool,
    /// Documents in frames that were not loaded because of the two.
    denied_documents: AtomicU32,
    /// The PDF that is captured.
    pdf: OnceLock<PdfTarget>,
    /// Signs requests for documents.
    signer: RequestSigner,
}

/// A PDF that is drawn in a document of ours, which has its address.
struct PdfTarget {
    /// Without a fragment.
    url: String,
    /// Its HTTP status.
    status: u16,
}

/// On whose behalf a request is made.
struct Requester<'a> {
    /// The origin of the document in the main frame. A pending navigation does not count.
    main: Option<Origin>,
    /// The document that caused the request. `None` if it is not known, as for a request of a worker.
    document: Option<&'a DocumentOrigin>,
    /// Whether the request is for the main frame.
    is_main: bool,
}

impl<'a> Requester<'a> {
    fn of(seen: &'a WatchState, paused: &PausedRequest) -> Self {
        let main = seen.document.as_ref().and_then(|document| Url::parse(&document.url).ok()).map(|url| url.origin());
        Self { main, document: seen.requester(paused), is_main: seen.is_for_main(paused) }
    }
}

impl<'a> Interception<'a> {
    pub(in crate::page) fn new(
        spec: &'a CaptureSpec,
        blocklist: Option<Arc<Blocklist>>,
        domains: Arc<DomainRules>,
        respect_opt_out: bool,
        signer: RequestSigner,
    ) -> Self {
        let Secrets { headers, basic_auth, .. } = &spec.secrets;
        let mut headers = headers.clone();
        if let Some(BasicAuth { username, password }) = basic_auth {
            let credentials = STANDARD.encode(format!("{username}:{password}"));
            headers.push(("authorization".to_owned(), format!("Basic {credentials}")));
        }
        let target = Url::parse(spec.url.as_str()).ok();
        Self {
            spec,
            target,
            headers,
            blocked_fonts: AtomicU32::new(0),
            blocklist,
            domains,
            respect_opt_out,
            denied_documents: AtomicU32::new(0),
            pdf: OnceLock::new(),
            signer,
        }
    }

    /// From the next [`Self::apply`] on, the document at this URL is the one in which its PDF is drawn.
    pub(in crate::page) fn show_pdf(&self, url: &str, status: u16) {
        let url = without_fragment(url);
        self.pdf.get_or_init(|| PdfTarget { url, status });
    }

    /// Whether a PDF is captured.
    pub(in crate::page) fn shows_pdf(&self) -> bool {
        self.pdf.get().is_some()
    }

    /// Whether the document that causes a request matters.
    pub(in crate::page) fn has_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Whether a document may not be loaded from this URL.
    pub(in crate::page) fn denies(&self, url: &str) -> bool {
        !self.domains.allows_url(url)
    }

    /// The number of documents in frames that were not loaded.
    pub(in crate::page) fn denied_documents(&self) -> u32 {
        self.denied_documents.load(Ordering::Relaxed)
    }

    /// The number of blocked requests for fonts.
    pub(in crate::page) fn blocked_fonts(&self) -> u32 {
        self.blocked_fonts.load(Ordering::Relaxed)
    }

    /// Sets which requests are paused. Does nothing if none are.
    ///
    /// # Errors
    /// If the browser does not answer.
    pub(in crate::page) async fn apply(&self, tab: &Tab, navigation_blocked: bool) -> Result<(), CallError> {
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
        for target in self.own_document().iter().chain(self.pdf.get().map(|pdf| &pdf.url)) {
            let resource_type = Some(ResourceType::Document);
            patterns.push(RequestPattern { resource_type, ..of_url(escaped(target.as_str()).replace('*', r"\*")) });
        }
        if let Some(pdf) = self.pdf.get().filter(|_| self.signer.is_active()) {
            // The script that draws the PDF requests it again.
            patterns.push(of_url(escaped(&pdf.url).replace('*', r"\*")));
        }
        // Before the host of a main document can be refused by a list.
        let has_lists = self.blocklist.as_ref().is_some_and(|list| list.has_lists());
        if navigation_blocked || has_lists || !self.domains.is_empty() || self.signer.is_active() {
            patterns.push(of_type(ResourceType::Document));
        }
        if self.respect_opt_out {
            let request_stage = Some(RequestStage::Response);
            patterns.push(RequestPattern { request_stage, ..of_type(ResourceType::Document) });
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
    pub(in crate::page) async fn answer(&self, tab: &Tab, paused: PausedRequest) {
        let decision = tab.watch.read(|seen| {
            let requester = Requester::of(seen, &paused);
            self.decide(&paused, seen.navigation_blocked, &requester)
        });
        let (client, session) = (&tab.client, Some(tab.session.as_str()));
        match decision {
            Decision::Fail(reason) => client.send(session, &FailRequestParams::new(paused.id, reason)).await,
            Decision::Continue => client.send(session, &ContinueRequestParams::new(paused.id)).await,
            Decision::ContinueWith(headers) => {
                let params = ContinueRequestParams { headers: Some(headers), ..ContinueRequestParams::new(paused.id) };
                client.send(session, &params).await;
            }
            Decision::Fulfill => {
                let html = self.spec.secrets.html.as_deref().unwrap_or_default();
                client.send(session, &html_response(paused.id, 200, html, &[])).await;
            }
            Decision::FulfillPdf { status } => {
                let policy = ("Content-Security-Policy", PDF_POLICY);
                client.send(session, &html_response(paused.id, status, PDF_DOCUMENT, &[policy])).await;
            }
        }
    }

    fn decide(&self, paused: &PausedRequest, navigation_blocked: bool, requester: &Requester<'_>) -> Decision {
        let (is_document, is_main) = (paused.is_document(), requester.is_main);
        if let Some(opts_out) = paused.opts_out {
            // The main document fails the capture when it is checked, with its own message.
            return if opts_out && !is_main { self.deny_document() } else { Decision::Continue };
        }
        if is_document && navigation_blocked {
            return Decision::Fail(ErrorReason::Aborted);
        }
        if is_document && is_main && self.own_document().is_some_and(|target| target == paused.url) {
            return Decision::Fulfill;
        }
        let pdf = self.pdf.get().filter(|pdf| requester.is_main && pdf.url == without_fragment(&paused.url));
        if let Some(PdfTarget { status, .. }) = pdf
            && is_document
        {
            return Decision::FulfillPdf { status: *status };
        }
        if is_document && self.denies(&paused.url) {
            return if is_main { Decision::Fail(ErrorReason::BlockedByClient) } else { self.deny_document() };
        }
        let blocking = &self.spec.blocking;
        let is_blocked = request_type(&paused.kind).is_some_and(|of| blocking.has_type(of));
        // The main document and the PDF that is captured are always loaded.
        let is_target = (is_document && is_main) || pdf.is_some();
        if !is_target && (is_blocked || blocking.has_url(&paused.url)) {
            if paused.kind == "Font" {
                self.blocked_fonts.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(blocklist) = &self.blocklist {
                blocklist.count_asked();
            }
            return Decision::Fail(ErrorReason::BlockedByClient);
        }
        if let Some(blocklist) = &self.blocklist {
            if is_document && is_main {
                blocklist.add_document(&paused.url);
            } else if !is_target && blocklist.blocks_url(&paused.url, &paused.kind) {
                return Decision::Fail(ErrorReason::BlockedByClient);
            }
        }
        let headers: &[(String, String)] = if self.acts_for_caller(paused, requester) { &self.headers } else { &[] };
        let signature = if is_document || pdf.is_some() { self.signer.sign(&paused.url) } else { None };
        with_headers(paused, headers, signature.as_ref())
    }

    fn deny_document(&self) -> Decision {
        self.denied_documents.fetch_add(1, Ordering::Relaxed);
        Decision::Fail(ErrorReason::BlockedByClient)
    }

    /// Whether a request gets the caller's headers: it goes to the origin of the target, and a document of that origin makes
    /// it. A page or a frame of another origin, for example after a redirect, cannot act in the caller's name.
    fn acts_for_caller(&self, paused: &PausedRequest, requester: &Requester<'_>) -> bool {
        let Some(target) = self.target.as_ref().map(Url::origin).filter(|_| self.has_headers()) else { return false };
        let is_target = |url: &str| Url::parse(url).is_ok_and(|url| url.origin() == target);
        if !is_target(&paused.url) {
            return false;
        }
        let is_in_target = requester.main.as_ref() == Some(&target);
        if paused.is_document() && requester.is_main {
            // The first document, its redirects, and what a page of the target leads to. Another page may lead back, as after a
            // login, but can neither choose what is sent nor read the response.
            return requester.main.is_none() || is_in_target || matches!(&*paused.method, "GET" | "HEAD");
        }
        // Frames and workers are recognized by the referrer, which they can leave out but not forge. Documents in a sandbox
        // have none.
        let is_referred = paused.referrer().is_some_and(is_target);
        let is_made_by_target = match requester.document {
            // The loader of a document in a frame is its own, not that of the one that asked for it.
            _ if paused.is_document() => is_referred,
            Some(DocumentOrigin::Web(origin)) => *origin == target && (requester.is_main || is_referred),
            Some(DocumentOrigin::Inherited) | None => is_referred,
        };
        is_in_target && is_made_by_target
    }
}

/// Sends a request with these headers of the caller and this signature besides its own headers. The signature is for this
/// request only: the browser sends no headers that were set here to where a response redirects, which is paused again.
fn with_headers(paused: &PausedRequest, headers: &[(String, String)], signature: Option<&SignatureFields>) -> Decision {
    if headers.is_empty() && signature.is_none() {
        return Decision::Continue;
    }
    let is_signature = |name: &str| signature.into_iter().flatten().any(|(of, _)| of.eq_ignore_ascii_case(name));
    let is_replaced = |name: &str| headers.iter().any(|(of, _)| of.eq_ignore_ascii_case(name));
    let own = paused.headers.iter().filter(|(name, _)| !is_replaced(name));
    let unsigned = own.chain(headers).filter(|(name, _)| !is_signature(name));
    let unsigned = unsigned.map(|(name, value)| HeaderEntry::new(name.clone(), value.clone()));
    let signed = signature.into_iter().flatten().map(|(name, value)| HeaderEntry::new(*name, value.clone()));
    Decision::ContinueWith(unsigned.chain(signed).collect())
}

/// An HTML document as the response to a paused request.
fn html_response(request: String, status: u16, html: &str, headers: &[(&str, &str)]) -> FulfillRequestParams {
    let content_type = [("Content-Type", "text/html; charset=utf-8")];
    let headers = content_type.iter().chain(headers).map(|(name, value)| HeaderEntry::new(*name, *value));
    FulfillRequestParams {
        response_headers: Some(headers.collect()),
        body: Some(STANDARD.encode(html).into()),
        ..FulfillRequestParams::new(request, status)
    }
}

fn without_fragment(url: &str) -> String {
    url.split('#').next().unwrap_or_default().to_owned()
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
mod tests;
