//! The outcome of a capture through a proxy of the team: whether the proxy is why it failed.

use grabd_domain::grabs::{Failure, FailureReason};
use grabd_domain::proxies::ProxyProblem;
use grabd_domain::render::Capture;

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::verdict::{self, Unreached};
use crate::page::load::navigate;

/// The outcome, with a failure that names the proxy if that is the reason. A page that lost its proxy while it was
/// loaded is not complete, so it is a failure, too.
pub(in crate::page) fn with_proxy_failure(
    context: &CaptureContext<'_>,
    captured: Result<Capture, CaptureError>,
) -> Result<Capture, CaptureError> {
    let Some(route) = context.tab.listener.upstream() else { return captured };
    match (captured, context.tab.listener.upstream_problem()) {
        (Ok(_), Some(problem)) => Err(problem.failure(&route.name).into()),
        (Err(CaptureError::Page(failure)), problem) if failure.reason == FailureReason::RenderFailed => {
            let problem = problem.or_else(|| problem_of_page(context, &failure));
            Err(problem.map_or(failure, |problem| problem.failure(&route.name)).into())
        }
        (captured, _) => captured,
    }
}

/// The problem of the proxy because of which the page itself was not loaded, if there is one.
fn problem_of_page(context: &CaptureContext<'_>, failure: &Failure) -> Option<ProxyProblem> {
    match verdict::look_up(&navigate::last_url(context), navigate::unreached_reason(context)) {
        Some(Unreached::ByProxy(problem)) => Some(problem),
        Some(Unreached::Refused | Unreached::Unresolved | Unreached::NotConnected | Unreached::TimedOut) => None,
        // The connection to the site leads through the proxy, and either may have ended it.
        None => verdict::is_of_broken_connection(failure).then_some(ProxyProblem::Broken),
    }
}
