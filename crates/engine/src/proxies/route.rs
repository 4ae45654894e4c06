//! The proxy of a capture: checked when the capture is created, read when it is rendered.

use std::sync::Arc;

use grabd_domain::Fault;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::{ErrorCause, Field};
use grabd_domain::grabs::{Failure, FailureReason};
use grabd_domain::ids::{ProxyId, TeamId};
use grabd_domain::proxies::{ProxyProblem, ProxyRoute};
use grabd_store::proxies::{ProxyRef, SealedRoute};

use super::login;
use crate::error::Error;
use crate::service::Core;

const DELETED: &str = "The proxy of this capture was deleted before it was used.";
const TURNED_OFF: &str = "This service does not load pages through proxies any more.";

/// Why a capture cannot use its proxy now.
pub(crate) enum RouteError {
    /// There is no such proxy any more. Final.
    Gone(Failure),
    /// It could not be read. Trying again may help.
    Unread(Error),
}

/// Checks that the proxy which a capture names is one of the caller.
///
/// # Errors
/// [`Fault::BadRequest`], if there is no such proxy, or if the service has none.
pub(crate) async fn check(core: &Core, caller: Caller, spec: &CaptureSpec) -> Result<(), Error> {
    let Some(id) = spec.proxy else { return Ok(()) };
    if !core.has_proxies() {
        return Err(turned_off("proxy", &format!("\"{id}\"")).into());
    }
    let Caller { team, environment, principal } = caller;
    let target = ProxyRef { team, environment, grant: principal.grant(), proxy: id };
    match core.store.proxies().find(target).await? {
        Some(_) => Ok(()),
        None => Err(unknown(id).into()),
    }
}

/// The fault of a request that names proxies while the service has none.
pub(super) fn turned_off(field: &'static str, seen: &str) -> Fault {
    let allowed = "left out, because the operator of this service has turned proxies off";
    Fault::BadRequest(Field::new(field, seen, allowed))
}

/// The fault of a capture whose proxy does not exist, or is not the caller's.
fn unknown(id: ProxyId) -> Fault {
    let allowed = "the id of a proxy of the same team and environment";
    Fault::BadRequest(Field::new("proxy", &format!("\"{id}\""), allowed))
}

/// What the renderer of a capture needs to use its proxy. `None` without a proxy. Read for each attempt, and
/// not kept.
///
/// # Errors
/// When the proxy cannot be used now.
pub(crate) async fn route(
    core: &Core,
    team: TeamId,
    spec: &CaptureSpec,
) -> Result<Option<Arc<ProxyRoute>>, RouteError> {
    let Some(id) = spec.proxy else { return Ok(None) };
    if !core.has_proxies() {
        return Err(RouteError::Gone(gone(TURNED_OFF)));
    }
    let sealed = core.store.proxies().begin_use(team, id, core.clock.now()).await;
    let sealed = sealed.map_err(|error| RouteError::Unread(error.into()))?;
    let Some(SealedRoute { name, url, login }) = sealed else { return Err(RouteError::Gone(gone(DELETED))) };
    let login = login.map(|sealed| login::unseal(&core.vault, id, &sealed)).transpose().map_err(RouteError::Unread)?;
    Ok(Some(Arc::new(ProxyRoute { name, url, login })))
}

fn gone(message: &str) -> Failure {
    Failure::new(FailureReason::RenderFailed, message).caused_by(ErrorCause::Request)
}

impl RouteError {
    /// The error of a create whose capture would be rendered at once.
    pub(crate) fn into_error(self, spec: &CaptureSpec) -> Error {
        match (self, spec.proxy) {
            (Self::Gone(_), Some(id)) => unknown(id).into(),
            (Self::Gone(_), None) => Error::state("a capture without a proxy has lost it"),
            (Self::Unread(error), _) => error,
        }
    }
}

/// Records that a capture failed because of its proxy, if it did.
pub(crate) async fn record_failure(core: &Core, id: ProxyId, failure: &Failure) {
    let Some(problem) = ProxyProblem::of_message(&failure.message) else { return };
    core.metrics.proxy_failed(problem);
    if let Err(error) = core.store.proxies().record_error(id, problem, core.clock.now()).await {
        tracing::warn!(%error, proxy.id = %id, "the failure of a proxy could not be recorded");
    }
}
