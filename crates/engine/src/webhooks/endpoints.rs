//! Endpoints: registered, read, changed, given a new secret, removed.

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::{Code, Field};
use grabd_domain::ids::EndpointId;
use grabd_domain::target::{TargetHost, TargetUrl};
use grabd_domain::webhooks::{Change, Endpoint, MAX_ENDPOINTS, ROTATION_OVERLAP, Registration, Request, Rules};
use grabd_store::{Mine, NewEndpoint, Registered};

use super::secret::Secret;
use crate::chance;
use crate::core::{Core, inside};

/// Registers an endpoint. The secret is in the answer and never again.
///
/// # Errors
/// [`Fault::BadRequest`] and [`Fault::SsrfDetected`], with the field that cannot be accepted.
pub async fn register(core: &Core, caller: Caller, request: &Request) -> Result<(Endpoint, Secret), Fault> {
    let registration = counted(core, Registration::parse(request, rules(core)))?;
    admit(core, &registration.url).await?;
    let now = core.clock.now();
    let id = chance::endpoint_id(now);
    let secret = Secret::draw();
    let sealed = secret.seal(&core.webhooks.vault, id);
    let Caller { team, environment, .. } = caller;
    let new = NewEndpoint { id, team, environment, registration, secret: sealed, now };
    match core.store.register_endpoint(new).await.map_err(inside("webhooks.register"))? {
        Registered::Yes(endpoint) => Ok((*endpoint, secret)),
        Registered::TooMany => {
            let allowed = format!("at most {MAX_ENDPOINTS} for this key's team and environment");
            Err(Fault::BadRequest(Field::new("webhooks", "one more", allowed)))
        }
        Registered::TeamInactive => Err(Fault::Unauthorized),
    }
}

/// The endpoint, if it is the caller's.
///
/// # Errors
/// [`Fault::NotFound`] for an id that is unknown or somebody else's.
pub async fn get(core: &Core, caller: Caller, id: EndpointId) -> Result<Endpoint, Fault> {
    let found = core.store.find_endpoint(caller.team, caller.environment, id).await;
    found.map_err(inside("webhooks.get"))?.ok_or_else(unknown)
}

/// The caller's endpoints, the newest first.
///
/// # Errors
/// Only our own.
pub async fn list(core: &Core, caller: Caller) -> Result<Vec<Endpoint>, Fault> {
    core.store.list_endpoints(caller.team, caller.environment).await.map_err(inside("webhooks.list"))
}

/// Changes what the request names.
///
/// # Errors
/// As [`register`], and [`Fault::NotFound`], which comes first.
pub async fn change(core: &Core, caller: Caller, id: EndpointId, request: &Request) -> Result<Endpoint, Fault> {
    get(core, caller, id).await?;
    let change = counted(core, Change::parse(request, rules(core)))?;
    if let Some(url) = &change.url {
        admit(core, url).await?;
    }
    let changed = core.store.change_endpoint(mine(caller, id), change).await;
    changed.map_err(inside("webhooks.change"))?.ok_or_else(unknown)
}

/// Gives an endpoint a new secret, which is in the answer and never again. For a day, the one before signs too.
///
/// # Errors
/// [`Fault::NotFound`].
pub async fn rotate_secret(core: &Core, caller: Caller, id: EndpointId) -> Result<(Endpoint, Secret), Fault> {
    let secret = Secret::draw();
    let sealed = secret.seal(&core.webhooks.vault, id);
    let until = core.clock.now() + ROTATION_OVERLAP;
    let rotated = core.store.rotate_secret(mine(caller, id), sealed, until).await;
    let endpoint = rotated.map_err(inside("webhooks.rotate_secret"))?.ok_or_else(unknown)?;
    Ok((endpoint, secret))
}

/// Removes an endpoint; what it was still owed is not sent.
///
/// # Errors
/// [`Fault::NotFound`].
pub async fn remove(core: &Core, caller: Caller, id: EndpointId) -> Result<(), Fault> {
    match core.store.remove_endpoint(mine(caller, id)).await.map_err(inside("webhooks.remove"))? {
        true => Ok(()),
        false => Err(unknown()),
    }
}

pub(super) const fn mine(caller: Caller, endpoint: EndpointId) -> Mine {
    Mine { team: caller.team, environment: caller.environment, endpoint }
}

pub(super) const fn unknown() -> Fault {
    Fault::NotFound { what: "webhook" }
}

fn rules(core: &Core) -> Rules<'_> {
    Rules { policy: core.guard.policy(), allow_http: core.webhooks.allow_http }
}

/// What is refused without a look-up counts as it does for a capture.
fn counted<T>(core: &Core, parsed: Result<T, Fault>) -> Result<T, Fault> {
    parsed.inspect_err(|fault| {
        if fault.code() == Code::SsrfDetected {
            core.guard.note_refused_url();
        }
    })
}

/// The host is looked up before anything is stored, so that a private address is refused at once. No answer, or none in
/// time, is no reason to refuse: the guard decides again at every attempt, on the address it dials.
async fn admit(core: &Core, url: &TargetUrl) -> Result<(), Fault> {
    let host = url.host();
    if matches!(host, TargetHost::Address(_)) {
        return Ok(());
    }
    match core.guard.resolve(&host).await {
        Err(refusal) if refusal.is_refused() => {
            tracing::info!(host = %host, reason = refusal.reason(), "an endpoint was refused: its host is not public");
            let allowed = "a URL whose host has public addresses only";
            Err(Fault::SsrfDetected(Field::new("url", &format!("\"{host}\""), allowed)))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}
