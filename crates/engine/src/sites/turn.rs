//! Does the next step of a leased job: reads a sitemap, or creates the grab of a page.

use std::time::Duration;

use grabd_domain::capture::Tolerance;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::faults::Code;
use grabd_domain::grabs::Class;
use grabd_domain::idempotency::LIFE;
use grabd_domain::ids::SiteId;
use grabd_domain::site::{
    SITEMAP_BYTES, Scope, Site, SiteError, SiteSpec, Sitemap, SkipReason, Source, normal_address, origin_of,
};
use grabd_domain::target::TargetUrl;
use grabd_domain::{Fault, Timestamp};
use grabd_store::Error;
use grabd_store::sites::{PageAttempt, PageEnd, PageToCapture, ReadSitemap, SiteStep, SiteStop, SiteTurn};

use super::documents::{self, Document, DocumentError, Excess};
use super::finish::{report, report_stop};
use super::robots::rules_of;
use super::robots_cache::HostRules;
use super::secrets;
use crate::failpoints::{self, Step};
use crate::grabs::{self, CreateRequest};
use crate::service::Core;
use crate::webhooks::site_message;

/// How long a process has for a step. After a crash, another one continues when this is over.
pub(super) const LEASE: Duration = Duration::from_secs(60);
/// When a grab is created again that a limit has refused.
const RETRY: Duration = Duration::from_secs(15);

/// Memory for a sitemap: as it is sent and decompressed, and its addresses.
const SITEMAP_MEMORY: u64 = 20 << 20;
/// Time limit of the wait for it.
const MEMORY_WAIT: Duration = Duration::from_secs(5);

/// What follows from a refused create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// No grab was created, and trying again may help.
    Passing,
    /// There may be a grab, and trying again finds it.
    Unknown,
    /// The team has no credits.
    NoCredits,
    /// The team is suspended, or has no access.
    NoAccess,
    /// The address of the page is private.
    Private,
    /// It is refused each time.
    Lasting,
}

impl Refusal {
    const fn of(code: Code) -> Self {
        match code {
            Code::CreditsExhausted => Self::NoCredits,
            Code::RateLimitExceeded | Code::QueueLimitExceeded => Self::Passing,
            Code::IdempotencyConflict | Code::InternalError => Self::Unknown,
            Code::Unauthorized | Code::Forbidden => Self::NoAccess,
            Code::SsrfDetected => Self::Private,
            Code::BadRequest
            | Code::InvalidViewport
            | Code::IdempotencyMismatch
            | Code::NotFound
            | Code::RenderBlocked
            | Code::RenderFailed => Self::Lasting,
        }
    }
}

/// Does the step of a leased job.
///
/// # Errors
/// Errors of the database as a whole.
pub(super) async fn run(core: &Core, turn: &SiteTurn) -> Result<(), Error> {
    match &turn.step {
        SiteStep::Sitemap { index, address } => read_sitemap(core, &turn.site, *index, address).await,
        SiteStep::Page(page) => capture(core, turn, page).await,
    }
}

/// Reads a sitemap. If the first one cannot be read, the job fails, and others are left out.
async fn read_sitemap(core: &Core, site: &Site, index: u32, address: &str) -> Result<(), Error> {
    let scope = Scope::of(site.spec.source.address());
    let Some(url) = normal_address(address) else {
        return fail(core, site.id, "bad_request", "The address of the sitemap is not valid.").await;
    };
    let delay = match allowed(core, site, &scope, &url).await {
        Allowed::Yes(delay) => delay,
        // A robots.txt concerns pages. The site says where its sitemap is.
        Allowed::No(SkipReason::Robots) => site.spec.pace(),
        Allowed::No(_) | Allowed::Unknown if index > 0 => site.spec.pace(),
        Allowed::No(_) => return fail(core, site.id, "ssrf_detected", "The host of the sitemap is not public.").await,
        Allowed::Unknown => return fail_without_robots(core, site.id, &url).await,
    };
    let Ok(_memory) = core.grabs.memory.reserve_at_most(SITEMAP_MEMORY, MEMORY_WAIT).await else {
        tracing::info!(site.id = %site.id, "a sitemap is read later, since there is no memory");
        return core.store.sites().delay(site.id, core.clock.now() + RETRY).await;
    };
    let loaded = match site.environment {
        Environment::Live => load_sitemap(core, &scope, &url).await,
        Environment::Test => Ok(placeholder_of(&url)),
    };
    let read = match loaded {
        Ok(sitemap) => Some(sitemap),
        Err(problem) if index == 0 => {
            return fail(core, site.id, "render_failed", &format!("The sitemap cannot be read: {problem}.")).await;
        }
        Err(problem) => {
            tracing::info!(site.id = %site.id, %problem, "a sitemap of a job cannot be read, and is left out");
            None
        }
    };
    let (pages, sitemaps) = match read {
        Some(Sitemap::Pages(pages)) => (normal(&pages), Vec::new()),
        Some(Sitemap::Index(sitemaps)) => (Vec::new(), normal(&sitemaps)),
        None => (Vec::new(), Vec::new()),
    };
    let now = core.clock.now();
    let read = ReadSitemap { site: site.id, index, pages, sitemaps, now, paced_until: now + delay, text: site_message };
    let finished = core.store.sites().add_sitemap(read).await?;
    report(core, finished.as_ref());
    Ok(())
}

/// What stands for the sitemap of a job of a test key, for which no site is contacted: three pages of the site.
fn placeholder_of(url: &TargetUrl) -> Sitemap {
    let origin = origin_of(url);
    Sitemap::Pages(["/", "/page-1", "/page-2"].map(|path| format!("{origin}{path}")).to_vec())
}

fn normal(addresses: &[String]) -> Vec<TargetUrl> {
    addresses.iter().filter_map(|address| normal_address(address)).collect()
}

/// Requests and reads a sitemap, or says why that is not possible.
async fn load_sitemap(core: &Core, scope: &Scope, url: &TargetUrl) -> Result<Sitemap, String> {
    let loaded = documents::fetch(core, scope, url, SITEMAP_BYTES, Excess::Refuse).await;
    let Document { status, body } = loaded.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("its server answered with status {}", status.as_u16()));
    }
    let work = move || {
        let body = documents::decompressed(body, SITEMAP_BYTES).map_err(|error: DocumentError| error.to_string())?;
        Sitemap::parse(&body).map_err(|error| error.to_string())
    };
    core.tasks.spawn_blocking(work).await.map_err(|_| "it could not be processed".to_owned())?
}

/// Whether an address may be requested.
enum Allowed {
    /// It may, and the next one after this time.
    Yes(Duration),
    /// It may not.
    No(SkipReason),
    /// The robots.txt could not be read.
    Unknown,
}

async fn allowed(core: &Core, site: &Site, scope: &Scope, url: &TargetUrl) -> Allowed {
    let pace = site.spec.pace();
    // No site is contacted for test keys.
    if !site.spec.robots || site.environment == Environment::Test {
        return Allowed::Yes(pace);
    }
    match rules_of(core, site.id, scope, url).await {
        HostRules::Rules(robots) if robots.allows(url) => {
            Allowed::Yes(pace.max(robots.crawl_delay().unwrap_or_default()))
        }
        HostRules::Rules(_) => Allowed::No(SkipReason::Robots),
        HostRules::Private => Allowed::No(SkipReason::PrivateAddress),
        HostRules::Unreachable => Allowed::Unknown,
    }
}

/// Captures a page, if the robots.txt of its host allows it. A repeated step gets the same grab, by its idempotency key.
async fn capture(core: &Core, turn: &SiteTurn, page: &PageToCapture) -> Result<(), Error> {
    let site = &turn.site;
    let attempt = |now: Timestamp, after: Duration| {
        let number = page.number;
        PageAttempt { site: site.id, number, now, paced_until: now + after }
    };
    let now = core.clock.now();
    let Some(create) = request(core, turn, page) else {
        tracing::error!(site.id = %site.id, "the secret options of a job cannot be decrypted: is it the right key file?");
        let message = "The headers, cookies or passwords of this job cannot be decrypted. Create another job.";
        let error = SiteError::new(Code::InternalError.as_str(), &message);
        return end(core, attempt(now, Duration::ZERO), PageEnd::Failed(error)).await;
    };
    let delay = match page.started_at {
        // After the key has expired, there may be a grab that cannot be found, and no second one is created.
        Some(started_at) if now + LEASE >= started_at + LIFE => {
            let message = "The service stopped when it captured this page, and was not running for a long time.";
            let error = SiteError::new(Code::InternalError.as_str(), &message);
            return end(core, attempt(now, Duration::ZERO), PageEnd::Failed(error)).await;
        }
        Some(_) => site.spec.pace(),
        None => match begin(core, site, page).await? {
            Begin::Started(delay) => delay,
            Begin::Skipped(reason) => {
                return end(core, attempt(core.clock.now(), Duration::ZERO), PageEnd::Skipped(reason)).await;
            }
            Begin::Elsewhere => return Ok(()),
        },
    };
    failpoints::reach(core, Step::PageStarted, None).await?;
    let created = grabs::create(core, caller(site), &create).await.map_err(crate::Error::into_fault);
    let now = core.clock.now();
    match created {
        Ok(created) => {
            failpoints::reach(core, Step::PageCreated, None).await?;
            core.store.sites().attach_grab(attempt(now, delay), created.grab.id).await.map(drop)
        }
        Err(fault) => refused(core, site, attempt(now, RETRY), attempt(now, Duration::ZERO), &fault).await,
    }
}

/// What precedes a capture.
enum Begin {
    /// It may begin, and the next one after this time.
    Started(Duration),
    /// The page is not captured.
    Skipped(SkipReason),
    /// There is nothing to do any more.
    Elsewhere,
}

async fn begin(core: &Core, site: &Site, page: &PageToCapture) -> Result<Begin, Error> {
    let scope = Scope::of(site.spec.source.address());
    let Some(url) = normal_address(&page.url) else { return Ok(Begin::Skipped(SkipReason::OtherSite)) };
    let delay = match allowed(core, site, &scope, &url).await {
        Allowed::Yes(delay) => delay,
        Allowed::No(reason) => return Ok(Begin::Skipped(reason)),
        Allowed::Unknown if is_start(site, page) => {
            fail_without_robots(core, site.id, &url).await?;
            return Ok(Begin::Elsewhere);
        }
        Allowed::Unknown => return Ok(Begin::Skipped(SkipReason::Robots)),
    };
    let now = core.clock.now();
    let attempt = PageAttempt { site: site.id, number: page.number, now, paced_until: now + delay };
    if core.store.sites().start_page(attempt).await? {
        return Ok(Begin::Started(delay));
    }
    core.store.sites().delay(site.id, now).await?;
    Ok(Begin::Elsewhere)
}

/// Whether a page is the one from which links are followed.
fn is_start(site: &Site, page: &PageToCapture) -> bool {
    matches!(site.spec.source, Source::Links { .. }) && page.number == 1
}

/// Decides what follows from a create that was refused. `later`: the page at the time of another attempt, `at_once`: the page, after
/// which the next one follows without a delay.
async fn refused(
    core: &Core,
    site: &Site,
    later: PageAttempt,
    at_once: PageAttempt,
    fault: &Fault,
) -> Result<(), Error> {
    let code = fault.code();
    let error = SiteError::new(code.as_str(), fault);
    match Refusal::of(code) {
        Refusal::Passing => {
            tracing::info!(site.id = %site.id, code = code.as_str(), "a page of a site is captured later");
            end(core, later, PageEnd::Delayed(error)).await
        }
        Refusal::Unknown => core.store.sites().delay(site.id, later.paced_until).await,
        Refusal::NoCredits => stop(core, site.id, SiteStop::OutOfCredits(error)).await,
        Refusal::NoAccess => stop(core, site.id, SiteStop::NoAccess).await,
        Refusal::Private => end(core, at_once, PageEnd::Skipped(SkipReason::PrivateAddress)).await,
        Refusal::Lasting => end(core, at_once, PageEnd::Failed(error)).await,
    }
}

async fn end(core: &Core, attempt: PageAttempt, end: PageEnd) -> Result<(), Error> {
    let finished = core.store.sites().end_page(attempt, end, site_message).await?;
    report(core, finished.as_ref());
    Ok(())
}

async fn stop(core: &Core, site: SiteId, why: SiteStop) -> Result<(), Error> {
    let stopped = core.store.sites().stop(site, why, core.clock.now(), site_message).await?;
    report_stop(core, &stopped);
    Ok(())
}

async fn fail(core: &Core, site: SiteId, code: &str, message: &str) -> Result<(), Error> {
    stop(core, site, SiteStop::Failed(SiteError::new(code, &message))).await
}

async fn fail_without_robots(core: &Core, site: SiteId, url: &TargetUrl) -> Result<(), Error> {
    let message = format!("The robots.txt of {} cannot be read, so that nothing of it may be captured.", url.host());
    fail(core, site, Code::RenderFailed.as_str(), &message).await
}

/// The create of a page. `None` if the secret options cannot be decrypted.
fn request(core: &Core, turn: &SiteTurn, page: &PageToCapture) -> Option<CreateRequest> {
    let SiteTurn { site, secrets, step: _ } = turn;
    let capture = secrets::unseal(&core.vault, site.id, site.spec.capture.clone(), secrets.as_deref())?;
    let spec = SiteSpec { capture, ..site.spec.clone() };
    Some(CreateRequest {
        capture: spec.page_request(&page.url),
        tolerance: Tolerance::default(),
        class: Class::Async,
        idempotency_key: Some(idempotency_key(site.id, page.number)),
        may_read: true,
        is_link: false,
    })
}

/// The same for each attempt at a page, and different for all pages.
fn idempotency_key(site: SiteId, number: u32) -> String {
    format!("site-{site}-{number}")
}

const fn caller(site: &Site) -> Caller {
    Caller { team: site.team, environment: site.environment, principal: site.creator }
}

#[cfg(test)]
mod tests {
    use grabd_domain::idempotency::IdempotencyKey;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn limits_and_outages_lose_no_page() {
        let of = |refusal: Refusal| -> Vec<&str> {
            Code::ALL.into_iter().filter(|code| Refusal::of(*code) == refusal).map(Code::as_str).collect()
        };
        assert_eq!(of(Refusal::Passing), ["rate_limit_exceeded", "queue_limit_exceeded"]);
        assert_eq!(of(Refusal::Unknown), ["idempotency_conflict", "internal_error"]);
        assert_eq!(of(Refusal::NoCredits), ["credits_exhausted"]);
        assert_eq!(of(Refusal::Private), ["ssrf_detected"]);
    }

    #[test]
    fn idempotency_key_of_a_page_is_valid() {
        let key = idempotency_key(SiteId(Uuid::nil()), 1000);
        assert_eq!(key, "site-00000000-0000-0000-0000-000000000000-1000");
        assert!(IdempotencyKey::parse(&key).is_ok());
    }
}
