//! Proxies: create, get, list, change, remove.

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::{Code, Field};
use grabd_domain::ids::ProxyId;
use grabd_domain::proxies::{MAX_PROXIES, NewProxy, Proxy, ProxyChange, ProxyRequest, ProxyUrl};
use grabd_store::proxies::{ChangeProxyOutcome, CreateProxyOutcome, NewProxyRow, ProxyRef, ProxyUpdate};

use super::login;
use super::route::turned_off;
use crate::error::Error;
use crate::random;
use crate::service::Core;
use crate::targets;

/// Maximum number of attempts of a change, each of which fails if the URL or the login is changed in the meantime.
const CHANGE_ATTEMPTS: usize = 5;

/// Creates a proxy. One of an app is deleted with its grant.
///
/// # Errors
/// [`Fault::BadRequest`] and [`Fault::SsrfDetected`], with the invalid member. [`Fault::Unauthorized`] when the grant
/// of the app has ended in the meantime.
#[tracing::instrument(name = "proxies.create", skip_all)]
pub async fn create(core: &Core, caller: Caller, request: &ProxyRequest) -> Result<Proxy, Error> {
    check_enabled(core)?;
    let NewProxy { name, url, login } = count_refused(core, NewProxy::parse(request, core.guard.policy()))?;
    check_host(core, &url).await?;
    let now = core.clock.now();
    let id = random::proxy_id(now);
    let login = login.map(|login| login::seal(&core.vault, id, login)).transpose()?;
    let Caller { team, environment, principal } = caller;
    let new = NewProxyRow { id, team, environment, creator: principal, name, url, login, now };
    match core.store_for(caller).proxies().create(new).await? {
        CreateProxyOutcome::Created(proxy) => Ok(*proxy),
        CreateProxyOutcome::TooMany => {
            let allowed = format!("at most {MAX_PROXIES} for the team in this environment");
            Err(Fault::BadRequest(Field::new("proxies", "one more", allowed)).into())
        }
        CreateProxyOutcome::TeamInactive => Err(Fault::TeamSuspended.into()),
        CreateProxyOutcome::AccessEnded => Err(Fault::Unauthorized.into()),
    }
}

/// Returns a proxy of the caller's team, or of the app that calls.
///
/// # Errors
/// [`Fault::NotFound`] when the proxy does not exist or is not the caller's.
#[tracing::instrument(name = "proxies.get", skip_all)]
pub async fn get(core: &Core, caller: Caller, id: ProxyId) -> Result<Proxy, Error> {
    check_enabled(core)?;
    let proxy = core.store.proxies().find(proxy_of(caller, id)).await;
    Ok(proxy?.ok_or_else(not_found)?)
}

/// Lists the proxies of the caller's team, or those of the app that calls, newest first.
///
/// # Errors
/// [`Fault::BadRequest`] when the service has no proxies.
#[tracing::instrument(name = "proxies.list", skip_all)]
pub async fn list(core: &Core, caller: Caller) -> Result<Vec<Proxy>, Error> {
    check_enabled(core)?;
    let Caller { team, environment, principal } = caller;
    let listed = core.store.proxies().list(team, environment, principal.grant()).await;
    Ok(listed?)
}

/// Changes the given members of a proxy.
///
/// # Errors
/// [`Fault::NotFound`], then the same as [`create`]. [`Fault::InternalError`] when others have changed the URL or the
/// login during each of several attempts.
#[tracing::instrument(name = "proxies.update", skip_all)]
pub async fn change(core: &Core, caller: Caller, id: ProxyId, request: &ProxyRequest) -> Result<Proxy, Error> {
    check_enabled(core)?;
    for _ in 0..CHANGE_ATTEMPTS {
        match try_change(core, caller, id, request).await? {
            ChangeProxyOutcome::Changed(proxy) => return Ok(*proxy),
            ChangeProxyOutcome::NotFound => return Err(not_found().into()),
            ChangeProxyOutcome::Outdated => {}
        }
    }
    Err(Fault::InternalError.into())
}

/// Checks a change against the current proxy, and makes it unless the URL or the login is changed in the meantime.
async fn try_change(
    core: &Core,
    caller: Caller,
    id: ProxyId,
    request: &ProxyRequest,
) -> Result<ChangeProxyOutcome, Error> {
    let target = proxy_of(caller, id);
    let found = core.store.proxies().find_with_login(target).await?;
    let Some((current, current_login)) = found else { return Ok(ChangeProxyOutcome::NotFound) };
    let mut change = count_refused(core, ProxyChange::parse(request, core.guard.policy()))?;
    // Forms repeat the current URL when only the name is changed.
    change.url = change.url.filter(|url| *url != current.url);
    if let Some(url) = &change.url {
        check_login_stays(&current, url, &change)?;
        check_host(core, url).await?;
    }
    if change == ProxyChange::default() {
        return Ok(ChangeProxyOutcome::Changed(Box::new(current)));
    }
    let login = match change.has_login() {
        true => Some(login_after(core, id, current_login.as_deref(), &change)?),
        false => None,
    };
    let update = ProxyUpdate {
        target,
        current_url: current.url,
        current_login,
        name: change.name,
        url: change.url,
        login,
        now: core.clock.now(),
    };
    Ok(core.store_for(caller).proxies().change(update).await?)
}

/// Deletes a proxy. Captures that name it fail uncharged from then on.
///
/// # Errors
/// [`Fault::NotFound`].
#[tracing::instrument(name = "proxies.delete", skip_all)]
pub async fn remove(core: &Core, caller: Caller, id: ProxyId) -> Result<(), Error> {
    check_enabled(core)?;
    match core.store_for(caller).proxies().remove(proxy_of(caller, id)).await? {
        true => Ok(()),
        false => Err(not_found().into()),
    }
}

/// The encrypted login after a change.
fn login_after(
    core: &Core,
    id: ProxyId,
    current: Option<&[u8]>,
    change: &ProxyChange,
) -> Result<Option<Vec<u8>>, Error> {
    // A login that is removed, or replaced as a whole, need not be readable any more.
    let before = match change.replaces_login() {
        true => None,
        false => current.map(|sealed| login::unseal(&core.vault, id, sealed)).transpose()?,
    };
    change.login_after(before)?.map(|login| login::seal(&core.vault, id, login)).transpose()
}

fn check_enabled(core: &Core) -> Result<(), Fault> {
    match core.has_proxies() {
        true => Ok(()),
        false => Err(turned_off("proxies", "")),
    }
}

/// Refuses to send a stored login to the server of a new URL: whoever may change a proxy could read its password there.
fn check_login_stays(current: &Proxy, url: &ProxyUrl, change: &ProxyChange) -> Result<(), Fault> {
    if !current.has_login || change.replaces_login() {
        return Ok(());
    }
    let allowed = "the current one, unless user name and password are given again or removed: stored ones are not sent to another server";
    Err(Fault::BadRequest(Field::new("url", &url.to_string(), allowed)))
}

/// Looks the host up, and refuses private addresses. When the lookup fails, the proxy is accepted: it is checked again
/// whenever it is used.
async fn check_host(core: &Core, url: &ProxyUrl) -> Result<(), Fault> {
    match targets::is_refused(core, url.host()).await {
        true => Err(url.not_public()),
        false => Ok(()),
    }
}

/// Counts URLs that are refused without a DNS lookup, as for captures.
fn count_refused<T>(core: &Core, parsed: Result<T, Fault>) -> Result<T, Fault> {
    parsed.inspect_err(|fault| {
        if fault.code() == Code::SsrfDetected {
            core.guard.record_refused_url();
        }
    })
}

const fn proxy_of(caller: Caller, proxy: ProxyId) -> ProxyRef {
    let Caller { team, environment, principal } = caller;
    ProxyRef { team, environment, grant: principal.grant(), proxy }
}

const fn not_found() -> Fault {
    Fault::NotFound { what: "proxy" }
}
