//! Site jobs: create, get, list, cancel, remove.

use grabd_domain::Fault;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::ids::SiteId;
use grabd_domain::monitor::MAX_CAPTURE_BYTES;
use grabd_domain::site::{Site, SiteRequest, SiteSpec, Source};
use grabd_store::sites::{CreateSiteOutcome, NewSite, SiteList, SiteRef};

use super::finish::report;
use super::secrets;
use crate::error::Error;
use crate::list_parameters::{invalid_cursor, parse_typed_limit};
use crate::monitors::ListRequest;
use crate::service::Core;
use crate::webhooks::site_message;
use crate::{proxies, random, targets};

const CURSOR: &str = "the id of a site job";

/// Creates a job. One of an app is deleted with its grant.
///
/// # Errors
/// [`Fault::BadRequest`] and others of a create, with the invalid member. [`Fault::Unauthorized`] when the grant of the app has
/// ended in the meantime.
#[tracing::instrument(name = "sites.create", skip_all)]
pub async fn create(core: &Core, caller: Caller, request: &SiteRequest) -> Result<Site, Error> {
    let limits = core.settings.operations.sites;
    let spec = SiteSpec::parse(request, limits.max_pages, limits.ignore_robots)?;
    spec.capture.blocking.check_lists(&core.settings.operations.listed_contents)?;
    proxies::check(core, caller, &spec.capture).await?;
    check_source(core, &spec.source).await?;
    let now = core.clock.now();
    let id = random::site_id(now);
    let Caller { team, environment, principal } = caller;
    let secrets = secrets::seal(&core.vault, id, &spec.capture)?;
    check_size(&spec.capture, secrets.as_deref())?;
    let open_limit = limits.open_per_team.into();
    let new = NewSite { id, team, environment, creator: principal, spec, secrets, open_limit, now };
    match core.store_for(caller).sites().create(new).await? {
        CreateSiteOutcome::Created(site) => {
            core.sites.notify();
            Ok(*site)
        }
        CreateSiteOutcome::TooMany => {
            let allowed = format!("at most {} at a time for the team in this environment", limits.open_per_team);
            Err(Fault::BadRequest(Field::new("sites", "one more", allowed)).into())
        }
        CreateSiteOutcome::TeamInactive => Err(Fault::TeamSuspended.into()),
        CreateSiteOutcome::AccessEnded => Err(Fault::Unauthorized.into()),
    }
}

/// Returns a job of the caller's team, or of the app that calls.
///
/// # Errors
/// [`Fault::NotFound`] when the job does not exist or is not the caller's.
#[tracing::instrument(name = "sites.get", skip_all)]
pub async fn get(core: &Core, caller: Caller, id: SiteId) -> Result<Site, Error> {
    let site = core.store.sites().find(site_of(caller, id)).await;
    Ok(site?.ok_or_else(not_found)?)
}

/// Some jobs of the caller's team, or of those of the app that calls, newest first.
///
/// # Errors
/// [`Fault::BadRequest`] with the invalid parameter.
#[tracing::instrument(name = "sites.list", skip_all)]
pub async fn list(core: &Core, caller: Caller, request: &ListRequest) -> Result<SiteList, Error> {
    let limit = parse_typed_limit(request.limit, &request.unparsed, CURSOR)?;
    let after = match request.starting_after.as_deref() {
        None => None,
        Some(text) => Some(text.parse::<SiteId>().map_err(|_| invalid_cursor(text, CURSOR))?),
    };
    let Caller { team, environment, principal } = caller;
    let found = core.store.sites().list(team, environment, principal.grant(), after, limit).await;
    Ok(found?)
}

/// Cancels a job: waiting pages are not captured any more, and captures that run end as usual. One that has ended stays as it is.
///
/// # Errors
/// [`Fault::NotFound`].
#[tracing::instrument(name = "sites.cancel", skip_all)]
pub async fn cancel(core: &Core, caller: Caller, id: SiteId) -> Result<Site, Error> {
    let target = site_of(caller, id);
    let canceled = core.store_for(caller).sites().cancel(target, core.clock.now(), site_message).await?;
    let (site, finished) = canceled.ok_or_else(not_found)?;
    report(core, finished.as_ref());
    Ok(site)
}

/// Deletes a job with its list of pages. Their grabs stay.
///
/// # Errors
/// [`Fault::NotFound`].
#[tracing::instrument(name = "sites.delete", skip_all)]
pub async fn remove(core: &Core, caller: Caller, id: SiteId) -> Result<(), Error> {
    match core.store_for(caller).sites().remove(site_of(caller, id)).await? {
        true => Ok(()),
        false => Err(not_found().into()),
    }
}

/// Checks the size of what is stored: a team may have many jobs, and their captures are not counted as what it stores.
fn check_size(capture: &CaptureSpec, sealed: Option<&[u8]>) -> Result<(), Error> {
    let bytes = serde_json::to_vec(&capture.without_secrets())?.len() + sealed.map_or(0, <[u8]>::len);
    if bytes <= MAX_CAPTURE_BYTES {
        return Ok(());
    }
    let allowed = format!("an object whose options take at most {MAX_CAPTURE_BYTES} bytes");
    Err(Fault::BadRequest(Field::new("capture", &format!("{bytes} bytes"), allowed)).into())
}

/// Makes those checks of an address that do not depend on the time.
async fn check_source(core: &Core, source: &Source) -> Result<(), Fault> {
    let name = match source {
        Source::Links { .. } => "url",
        Source::Sitemap(_) => "sitemap",
    };
    let in_member = |fault: Fault| {
        if let Fault::BadRequest(field) = fault {
            return Fault::BadRequest(Field { name, ..field });
        }
        if let Fault::SsrfDetected(field) = fault { Fault::SsrfDetected(Field { name, ..field }) } else { fault }
    };
    targets::check_page_url(core, source.address()).map_err(in_member)?;
    targets::check_host(core, source.address()).await.map_err(in_member)
}

const fn site_of(caller: Caller, site: SiteId) -> SiteRef {
    let Caller { team, environment, principal } = caller;
    SiteRef { team, environment, grant: principal.grant(), site }
}

const fn not_found() -> Fault {
    Fault::NotFound { what: "site job" }
}
