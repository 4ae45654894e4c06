//! Navigates the tab until a document stays, and checks that it is the requested one.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::{
    AddScriptToEvaluateOnNewDocumentParams, NavigateParams, StopLoadingParams,
};
use grabd_domain::capture::Scale;
use grabd_domain::domains::DomainRules;
use grabd_domain::grabs::Failure;
use grabd_egress::EgressError;
use serde::Deserialize;
use tokio::time::Instant;

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::verdict::{self, Unreached};
use crate::page::load::pdf_target;
use crate::page::load::watch::{Document, Navigation, WatchState};
use crate::page::picture::shot;
use crate::proxy::UnreachedTarget;

/// Main-frame navigations, not counting HTTP redirects, after which further navigation is blocked. Real chains of
/// logins and consent pages have at most six.
const MAX_NAVIGATIONS: u32 = 20;

/// The same for navigation that cannot be blocked, once the page must be captured. The last one may have begun before.
const MAX_LATE_NAVIGATIONS: u32 = 3;

/// The wait for a navigation that is being stopped. If it cannot be stopped any more, it ends with the first bytes of
/// its document.
const STOP_LIMIT: Duration = Duration::from_millis(500);

/// The part of the budget that is reserved for reporting a failure before the caller's own time limit.
const REPORT_RESERVE: Duration = Duration::from_secs(1);

/// A dying browser closes its pages shortly before its pipe.
pub(in crate::page) const CLOSE_DELAY: Duration = Duration::from_millis(250);

/// Keeps pages from noticing that their first frame is drawn late.
const FIRST_RESIZE: &str = include_str!("../scripts/first_resize.js");

/// The isolated world of that script.
const WORLD: &str = "grabd-first-resize";

/// The browser's error for a navigation that it has ended itself.
const ABORTED: &str = "net::ERR_ABORTED";

/// The wait for the browser's page about an error.
const ERROR_PAGE_LIMIT: Duration = Duration::from_secs(2);

const NO_ANSWER: &str = "The site did not answer in time.";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NavigateResult {
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

/// Sets the size of the page and navigates to its URL.
pub(in crate::page) async fn navigate(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    let (client, session) = (&context.tab.client, Some(context.tab.session.as_str()));
    let (viewport, scale) = (context.spec.viewport, context.spec.scale);
    if viewport != context.tab.viewport || scale != Scale::ONE || context.spec.device.is_mobile() {
        // The response comes before the response to the navigation, which is waited for.
        client.tell(session, &context.metrics(viewport.width(), viewport.height()));
    }
    if context.spec.device.is_mobile() && context.spec.javascript {
        let script = AddScriptToEvaluateOnNewDocumentParams::new(format!("{{{FIRST_RESIZE}}}"));
        client.tell(session, &AddScriptToEvaluateOnNewDocumentParams { world_name: Some(WORLD.into()), ..script });
    }
    let navigated = go_to(context, context.spec.url.as_str()).await?;
    match aborted_pdf(context, &navigated) {
        Some(pdf) => {
            check(context, &pdf)?;
            if navigated.error_text.as_deref().is_some_and(|error| error != ABORTED) {
                // The browser shows its page about the error only now. It would count as the document of the next navigation.
                let is_shown =
                    |seen: &mut WatchState| seen.document.as_ref().filter(|page| page.loader == pdf.loader).map(|_| ());
                context.tab.watch.until(Instant::now() + ERROR_PAGE_LIMIT, is_shown).await;
            }
            pdf_target::open(context, &pdf).await?;
            expect_document(context, go_to(context, &pdf.url).await?).await
        }
        None => expect_document(context, navigated).await,
    }
}

async fn go_to(context: &CaptureContext<'_>, url: &str) -> Result<NavigateResult, CaptureError> {
    let left = context.remaining();
    let limit = left.saturating_sub(REPORT_RESERVE.min(left / 4));
    match context.tab.client.call_as(limit, Some(&context.tab.session), NavigateParams::new(url)).await {
        Err(CallError::Timeout(_)) => Err(CaptureError::failed(NO_ANSWER)),
        navigated => Ok(navigated?),
    }
}

/// The PDF at which a navigation has ended, because the browser would download it. It refuses to download one whose status is an
/// error, with an error of its own.
fn aborted_pdf(context: &CaptureContext<'_>, navigated: &NavigateResult) -> Option<Document> {
    if !navigated.is_download && navigated.error_text.is_none() {
        return None;
    }
    let Navigation { loader, url, error: _, head } = last_navigation(context, None);
    head.as_ref().filter(|head| head.is_pdf)?;
    Some(Document { loader, url, unreachable_url: None, error: None, head })
}

/// Checks that a navigation has led to a document.
async fn expect_document(context: &CaptureContext<'_>, navigated: NavigateResult) -> Result<(), CaptureError> {
    if navigated.is_download {
        return Err(abort(context, &last_navigation(context, None), true).await);
    }
    match navigated.error_text {
        None => Ok(()),
        Some(error) if error == ABORTED => {
            let download = context.tab.watch.read(|seen| seen.download);
            Err(abort(context, &last_navigation(context, Some(error)), download).await)
        }
        Some(error) => {
            let failed = last_navigation(context, Some(error.clone()));
            let failure = verdict::unreached_failure(&failed.url, Some(&error), unreached_reason(context));
            Err(refused_or(context, &failed.url, failure))
        }
    }
}

/// Waits for the document in the main frame until no navigation is pending.
pub(in crate::page) async fn document(context: &CaptureContext<'_>) -> Result<Document, CaptureError> {
    enum NavigationState {
        Document(Document),
        Aborted(Navigation, bool),
        Loop { navigation_blocked: bool },
    }
    let max_unblocked = if context.is_late() { MAX_LATE_NAVIGATIONS } else { MAX_NAVIGATIONS };
    let find = |seen: &mut WatchState| {
        let max_navigations = match seen.navigation_blocked {
            true => seen.navigations_before_block + max_unblocked,
            false => MAX_NAVIGATIONS,
        };
        if seen.navigations > max_navigations || (seen.navigation_blocked && seen.document.is_none()) {
            return Some(NavigationState::Loop { navigation_blocked: seen.navigation_blocked });
        }
        match (&seen.document, seen.pending_navigation(), &seen.aborted) {
            (_, Some(_), _) => None,
            (Some(document), None, _) => Some(NavigationState::Document(document.clone())),
            (None, None, Some(aborted)) => Some(NavigationState::Aborted(aborted.clone(), seen.download)),
            (None, None, None) => None,
        }
    };
    let mut found = context.tab.watch.until(context.capture_by, find).await;
    if let Some(NavigationState::Loop { navigation_blocked: false }) = found {
        block_navigation(context).await?;
        found = context.tab.watch.until(context.capture_by, find).await;
    }
    let document = match found {
        Some(NavigationState::Document(document)) => document,
        Some(NavigationState::Aborted(navigation, download)) => {
            return Err(abort(context, &navigation, download).await);
        }
        // Some navigations use no network request and cannot be blocked.
        Some(NavigationState::Loop { .. }) => {
            return Err(CaptureError::failed("The page goes from address to address without end."));
        }
        // If a navigation does not end, capture the current document.
        None => match context.tab.watch.read(|seen| seen.document.clone()) {
            Some(document) => document,
            None => return Err(CaptureError::failed(NO_ANSWER)),
        },
    };
    match document.unreachable_url {
        Some(_) => Err(check(context, &document)
            .err()
            .unwrap_or_else(|| CaptureError::failed("The page could not be loaded."))),
        None => Ok(document),
    }
}

/// Blocks navigation to other documents by refusing their requests.
async fn block_navigation(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    if context.tab.watch.read(|seen| seen.navigation_blocked) {
        return Ok(());
    }
    context.interception.apply(context.tab, true).await?;
    context.tab.watch.set_navigation_blocked();
    Ok(())
}

/// Stops all loading, because there is no time for another document and no image can be taken while a document is
/// replaced. Returns false if another document could not be stopped any more.
pub(in crate::page) async fn stop(context: &CaptureContext<'_>, document: &Document) -> Result<bool, CaptureError> {
    block_navigation(context).await?;
    // A document without a body is never drawn, and one that is stopped before its body is parsed never gets it
    // (Chromium 156).
    let limit = Instant::now() + STOP_LIMIT;
    context.tab.watch.until(limit, |seen| seen.parsed_at.is_some().then_some(())).await;
    if context.tab.watch.read(|seen| seen.navigation.is_none()) {
        return Ok(!context.is_replaced(document));
    }
    match context.tab.client.call(Some(&context.tab.session), StopLoadingParams::default()).await {
        Err(CallError::Refused { message, .. }) if shot::is_between_documents(&message) => {
            wait_for_replacement(context, document).await;
            return Ok(false);
        }
        stopped => _ = stopped?,
    }
    let limit = Instant::now() + STOP_LIMIT;
    context.tab.watch.until(limit, |seen| seen.navigation.is_none().then_some(())).await;
    Ok(!context.is_replaced(document))
}

/// Waits for the document that is about to replace this one.
pub(in crate::page) async fn wait_for_replacement(context: &CaptureContext<'_>, document: &Document) {
    let other = |now: &Document| now.loader != document.loader;
    let find = |seen: &mut WatchState| seen.document.as_ref().is_some_and(other).then_some(());
    context.tab.watch.until(Instant::now() + STOP_LIMIT, find).await;
}

/// Checks the current state of the document: its URL may have changed, its response head may have arrived.
///
/// # Errors
/// Why the document must not be captured.
pub(in crate::page) fn check_current(context: &CaptureContext<'_>, document: &Document) -> Result<(), CaptureError> {
    let same = |now: &&Document| now.loader == document.loader;
    let current = context.tab.watch.read(|seen| seen.document.as_ref().filter(same).cloned());
    check(context, current.as_ref().unwrap_or(document))
}

fn check(context: &CaptureContext<'_>, document: &Document) -> Result<(), CaptureError> {
    let url = document.unreachable_url.as_ref().unwrap_or(&document.url);
    match verdict::check(document, &context.spec.statuses, unreached_reason(context)) {
        Ok(()) if context.tab.listener.over_limit() => Err(CaptureError::over_limit()),
        // A document that came without a request, for example from a prefetch.
        Ok(()) if context.interception.denies(url) => Err(DomainRules::failure().into()),
        Ok(()) if context.limits.respect_opt_out && verdict::opts_out(document) => {
            Err(verdict::opt_out_failure().into())
        }
        Ok(()) => Ok(()),
        Err(failure) => Err(refused_or(context, url, failure)),
    }
}

async fn abort(context: &CaptureContext<'_>, navigation: &Navigation, download: bool) -> CaptureError {
    if !download {
        // A crash also aborts the navigation, and its event comes first.
        context.tab.watch.until(Instant::now() + CLOSE_DELAY, |seen| seen.gone).await;
    }
    refused_or(context, &navigation.url, verdict::aborted_failure(navigation, download, unreached_reason(context)))
}

/// A document that was not requested has its own failure, as has a connection that the proxy cut, whatever error the browser
/// reports.
fn refused_or(context: &CaptureContext<'_>, url: &str, failure: Failure) -> CaptureError {
    if context.interception.denies(url) {
        return DomainRules::failure().into();
    }
    match context.tab.listener.over_limit() {
        true => CaptureError::over_limit(),
        false => failure.into(),
    }
}

/// The URL of the navigation that just failed, after redirects.
pub(in crate::page) fn last_url(context: &CaptureContext<'_>) -> String {
    last_navigation(context, None).url
}

/// Looks up why the proxy did not reach a target.
pub(in crate::page) fn unreached_reason(context: &CaptureContext<'_>) -> impl Fn(&str, u16) -> Option<Unreached> {
    |host, port| {
        let listener = &context.tab.listener;
        if listener.was_refused(host, port) {
            return Some(Unreached::Refused);
        }
        let matches = |target: &UnreachedTarget| target.host == host && target.port == port;
        listener.unreached().into_iter().rfind(matches).map(|target| match target.refusal {
            EgressError::Address { .. } | EgressError::Name | EgressError::Port => Unreached::Refused,
            EgressError::Unresolved => Unreached::Unresolved,
            EgressError::ConnectFailed(_) => Unreached::NotConnected,
            EgressError::TimedOut => Unreached::TimedOut,
            EgressError::Proxy(problem) => Unreached::ByProxy(problem),
        })
    }
}

/// The navigation that just failed, after redirects.
fn last_navigation(context: &CaptureContext<'_>, error: Option<String>) -> Navigation {
    let initial =
        || Navigation { loader: String::new(), url: context.spec.url.as_str().to_owned(), error: None, head: None };
    let last = context.tab.watch.read(|seen| {
        let unreachable = seen.document.as_ref().and_then(|document| {
            let url = document.unreachable_url.clone()?;
            Some(Navigation { loader: document.loader.clone(), url, error: None, head: document.head.clone() })
        });
        seen.navigation.clone().or_else(|| seen.aborted.clone()).or(unreachable)
    });
    let last = last.unwrap_or_else(initial);
    Navigation { error: last.error.clone().or(error), ..last }
}
