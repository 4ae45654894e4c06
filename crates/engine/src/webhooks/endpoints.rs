//! Endpoints: register, get, list, change, rotate the secret, remove.

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::{Code, Field};
use grabd_domain::ids::EndpointId;
use grabd_domain::webhooks::{
    Endpoint, EndpointRequest, EndpointRules, EndpointUpdate, ROTATION_OVERLAP, Registration,
};
use grabd_store::webhooks::{EndpointRef, NewEndpoint, RegisterOutcome};

use super::secret::Secret;
use crate::core::Core;
use crate::faults::internal_error;
use crate::random;
use crate::targets;

/// Registers an endpoint. The secret is returned only here.
///
/// # Errors
/// [`Fault::BadRequest`] and [`Fault::SsrfDetected`], with the invalid field.
#[tracing::instrument(name = "webhooks.create", skip_all)]
pub async fn register(core: &Core, caller: Caller, request: &EndpointRequest) -> Result<(Endpoint, Secret), Fault> {
    let registration = count_refused(core, Registration::parse(request, rules(core)))?;
    targets::check_host(core, &registration.url).await?;
    let now = core.clock.now();
    let id = random::endpoint_id(now);
    let secret = Secret::generate();
    let sealed = secret.seal(&core.webhooks.vault, id);
    let Caller { team, environment, .. } = caller;
    let new = NewEndpoint { id, team, environment, registration, secret: sealed, now };
    match core.store.register_endpoint(new).await.map_err(internal_error("webhooks.register"))? {
        RegisterOutcome::Registered(endpoint) => Ok((*endpoint, secret)),
        RegisterOutcome::TooMany { limit } => {
            let allowed = format!("at most {limit} for the team in this environment");
            Err(Fault::BadRequest(Field::new("webhooks", "one more", allowed)))
        }
        RegisterOutcome::TeamInactive => Err(Fault::TeamSuspended),
    }
}

/// Returns an endpoint of the caller.
///
/// # Errors
/// [`Fault::NotFound`] when the endpoint does not exist or belongs to another team.
#[tracing::instrument(name = "webhooks.get", skip_all)]
pub async fn get(core: &Core, caller: Caller, id: EndpointId) -> Result<Endpoint, Fault> {
    let endpoint = core.store.find_endpoint(caller.team, caller.environment, id).await;
    endpoint.map_err(internal_error("webhooks.get"))?.ok_or_else(not_found)
}

/// Lists the caller's endpoints, newest first.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
#[tracing::instrument(name = "webhooks.list", skip_all)]
pub async fn list(core: &Core, caller: Caller) -> Result<Vec<Endpoint>, Fault> {
    core.store.list_endpoints(caller.team, caller.environment).await.map_err(internal_error("webhooks.list"))
}

/// Changes the given fields of an endpoint.
///
/// # Errors
/// [`Fault::NotFound`], then the same as [`register`].
#[tracing::instrument(name = "webhooks.update", skip_all)]
pub async fn change(core: &Core, caller: Caller, id: EndpointId, request: &EndpointRequest) -> Result<Endpoint, Fault> {
    get(core, caller, id).await?;
    let change = count_refused(core, EndpointUpdate::parse(request, rules(core)))?;
    if let Some(url) = &change.url {
        targets::check_host(core, url).await?;
    }
    let changed = core.store.change_endpoint(endpoint_of(caller, id), change).await;
    changed.map_err(internal_error("webhooks.change"))?.ok_or_else(not_found)
}

/// Replaces the secret of an endpoint and returns the new one, only here. For a day, the old secret signs too.
///
/// # Errors
/// [`Fault::NotFound`].
#[tracing::instrument(name = "webhooks.rotate_secret", skip_all)]
pub async fn rotate_secret(core: &Core, caller: Caller, id: EndpointId) -> Result<(Endpoint, Secret), Fault> {
    let secret = Secret::generate();
    let sealed = secret.seal(&core.webhooks.vault, id);
    let until = core.clock.now() + ROTATION_OVERLAP;
    let rotated = core.store.rotate_secret(endpoint_of(caller, id), sealed, until).await;
    let endpoint = rotated.map_err(internal_error("webhooks.rotate_secret"))?.ok_or_else(not_found)?;
    Ok((endpoint, secret))
}

/// Removes an endpoint. Its pending deliveries are not sent.
///
/// # Errors
/// [`Fault::NotFound`].
#[tracing::instrument(name = "webhooks.delete", skip_all)]
pub async fn remove(core: &Core, caller: Caller, id: EndpointId) -> Result<(), Fault> {
    match core.store.remove_endpoint(endpoint_of(caller, id)).await.map_err(internal_error("webhooks.remove"))? {
        true => Ok(()),
        false => Err(not_found()),
    }
}

pub(super) const fn endpoint_of(caller: Caller, endpoint: EndpointId) -> EndpointRef {
    EndpointRef { team: caller.team, environment: caller.environment, endpoint }
}

pub(super) const fn not_found() -> Fault {
    Fault::NotFound { what: "webhook" }
}

fn rules(core: &Core) -> EndpointRules<'_> {
    EndpointRules { policy: core.guard.policy(), allow_http: core.webhooks.allow_http }
}

/// Counts URLs that are refused without a DNS lookup, as for captures.
fn count_refused<T>(core: &Core, parsed: Result<T, Fault>) -> Result<T, Fault> {
    parsed.inspect_err(|fault| {
        if fault.code() == Code::SsrfDetected {
            core.guard.record_refused_url();
        }
    })
}
