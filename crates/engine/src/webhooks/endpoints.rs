//! Endpoints: register, get, list, change, rotate the secret, remove.

use std::collections::HashMap;

use grabd_domain::credentials::Caller;
use grabd_domain::faults::{Code, Field};
use grabd_domain::ids::{EndpointId, GrantId, TeamId, UserId};
use grabd_domain::webhooks::{
    Creator, Endpoint, EndpointRequest, EndpointRules, EndpointUpdate, ROTATION_OVERLAP, Registration,
};
use grabd_domain::{Fault, Timestamp};
use grabd_store::Store;
use grabd_store::webhooks::{EndpointRef, NewEndpoint, NewEndpointSecret, RegisterOutcome};

use super::secret::Secret;
use crate::error::Error;
use crate::random;
use crate::service::Core;
use crate::targets;
use crate::vault::Vault;

/// Registers an endpoint. The secret is returned only here. That of an app is deleted with its grant.
///
/// # Errors
/// [`Fault::BadRequest`] and [`Fault::SsrfDetected`], with the invalid field. [`Fault::Unauthorized`] when the grant of the
/// app has ended in the meantime.
#[tracing::instrument(name = "webhooks.create", skip_all)]
pub async fn register(core: &Core, caller: Caller, request: &EndpointRequest) -> Result<(Endpoint, Secret), Error> {
    let registration = count_refused(core, Registration::parse(request, rules(core)))?;
    targets::check_host(core, &registration.url).await?;
    let now = core.clock.now();
    let id = random::endpoint_id(now);
    let secret = Secret::generate();
    let sealed = secret.seal(&core.vault, id);
    let Caller { team, environment, principal } = caller;
    let (creator, by) = (principal.into(), principal.user());
    let new = NewEndpoint { id, team, environment, registration, secret: sealed, creator, by, now };
    match core.store.webhooks().register_endpoint(new).await? {
        RegisterOutcome::Registered(endpoint) => Ok((*endpoint, secret)),
        RegisterOutcome::TooMany { limit } => {
            let allowed = format!("at most {limit} for the team in this environment");
            Err(Fault::BadRequest(Field::new("webhooks", "one more", allowed)).into())
        }
        RegisterOutcome::TeamInactive => Err(Fault::TeamSuspended.into()),
        RegisterOutcome::AccessEnded => Err(Fault::Unauthorized.into()),
    }
}

/// Returns an endpoint of the caller's team, or of the app that calls.
///
/// # Errors
/// [`Fault::NotFound`] when the endpoint does not exist or is not the caller's.
#[tracing::instrument(name = "webhooks.get", skip_all)]
pub async fn get(core: &Core, caller: Caller, id: EndpointId) -> Result<Endpoint, Error> {
    let endpoint = core.store.webhooks().find_endpoint(endpoint_of(caller, id)).await;
    Ok(endpoint?.ok_or_else(not_found)?)
}

/// Lists the endpoints of the caller's team, or those of the app that calls, newest first.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "webhooks.list", skip_all)]
pub async fn list(core: &Core, caller: Caller) -> Result<Vec<Endpoint>, Error> {
    let Caller { team, environment, principal } = caller;
    let listed = core.store.webhooks().list_endpoints(team, environment, principal.grant()).await;
    Ok(listed?)
}

/// Changes the given fields of an endpoint.
///
/// # Errors
/// [`Fault::NotFound`], then the same as [`register`].
#[tracing::instrument(name = "webhooks.update", skip_all)]
pub async fn change(core: &Core, caller: Caller, id: EndpointId, request: &EndpointRequest) -> Result<Endpoint, Error> {
    get(core, caller, id).await?;
    let change = count_refused(core, EndpointUpdate::parse(request, rules(core)))?;
    if let Some(url) = &change.url {
        targets::check_host(core, url).await?;
    }
    let changed = core.store.webhooks().change_endpoint(endpoint_of(caller, id), change).await;
    Ok(changed?.ok_or_else(not_found)?)
}

/// Replaces the secret of an endpoint and returns the new one, only here. For a day, the old secret signs too.
///
/// # Errors
/// [`Fault::NotFound`].
#[tracing::instrument(name = "webhooks.rotate_secret", skip_all)]
pub async fn rotate_secret(core: &Core, caller: Caller, id: EndpointId) -> Result<(Endpoint, Secret), Error> {
    let secret = Secret::generate();
    let sealed = secret.seal(&core.vault, id);
    let now = core.clock.now();
    let new = NewEndpointSecret {
        target: endpoint_of(caller, id),
        secret: sealed,
        by: caller.principal.user(),
        now,
        previous_until: now + ROTATION_OVERLAP,
    };
    let rotated = core.store.webhooks().rotate_secret(new).await;
    let endpoint = rotated?.ok_or_else(not_found)?;
    Ok((endpoint, secret))
}

/// Replaces the secret of an endpoint on behalf of an operator, as [`rotate_secret`]. `None` if there is no such endpoint.
///
/// # Errors
/// Database errors only.
pub async fn rotate_secret_as_operator(
    store: &Store,
    vault: &Vault,
    id: EndpointId,
    now: Timestamp,
) -> Result<Option<(Endpoint, Secret)>, grabd_store::Error> {
    let Some(Endpoint { team, environment, .. }) = store.webhooks().find_endpoint_by_id(id).await? else {
        return Ok(None);
    };
    let (secret, target) = (Secret::generate(), EndpointRef { team, environment, grant: None, endpoint: id });
    let sealed = secret.seal(vault, id);
    let new = NewEndpointSecret { target, secret: sealed, by: None, now, previous_until: now + ROTATION_OVERLAP };
    Ok(store.webhooks().rotate_secret(new).await?.map(|endpoint| (endpoint, secret)))
}

/// Removes an endpoint. Its pending deliveries are not sent.
///
/// # Errors
/// [`Fault::NotFound`].
#[tracing::instrument(name = "webhooks.delete", skip_all)]
pub async fn remove(core: &Core, caller: Caller, id: EndpointId) -> Result<(), Error> {
    match core.store.webhooks().remove_endpoint(endpoint_of(caller, id)).await? {
        true => Ok(()),
        false => Err(not_found().into()),
    }
}

/// Records that a user knows an endpoint whose creator was not recorded.
///
/// # Errors
/// [`Fault::NotFound`] when there is no such endpoint.
#[tracing::instrument(name = "webhooks.keep", skip_all)]
pub async fn keep(core: &Core, caller: Caller, id: EndpointId) -> Result<(), Error> {
    match core.store.webhooks().keep_endpoint(endpoint_of(caller, id)).await? {
        true => Ok(()),
        false => Err(not_found().into()),
    }
}

/// The names of the apps that have created some of these endpoints. The apps have chosen them.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "webhooks.app_names", skip_all)]
pub async fn app_names(core: &Core, endpoints: &[Endpoint]) -> Result<HashMap<GrantId, String>, Error> {
    let grants = endpoints.iter().filter_map(|endpoint| match endpoint.creator {
        Some(Creator::App(grant)) => Some(grant),
        Some(Creator::Key | Creator::User) | None => None,
    });
    let grants: Vec<GrantId> = grants.collect();
    Ok(core.store.webhooks().app_names(&grants).await?)
}

/// The teams of a user that have endpoints whose creator was not recorded. It may have been an app.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "webhooks.unknown", skip_all)]
pub async fn teams_with_unknown_endpoints(core: &Core, user: UserId) -> Result<Vec<(TeamId, String)>, Error> {
    Ok(core.store.webhooks().teams_with_unknown_endpoints(user).await?)
}

pub(super) const fn endpoint_of(caller: Caller, endpoint: EndpointId) -> EndpointRef {
    let Caller { team, environment, principal } = caller;
    EndpointRef { team, environment, grant: principal.grant(), endpoint }
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
