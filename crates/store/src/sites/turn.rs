//! Leases jobs that are due, for one step.

use grabd_domain::Timestamp;
use grabd_domain::ids::SiteId;
use grabd_domain::site::{LONGEST_OPEN, OPEN_GRABS, PageState, Site, SiteState, SkipReason};
use sea_orm::sea_query::{Expr, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};

use super::finish::{FinishedSite, SiteText, has_sitemaps, settle, stop};
use super::queries::DUE;
use super::site_ref::read;
use crate::areas::Sites;
use crate::codes::{ACTIVE, read_count, read_time};
use crate::database::{Transaction, Tx};
use crate::entities::{site, site_page, team};
use crate::webhooks::creators::Inactive;
use crate::{Error, Result};

/// How long a job waits for the end of its captures, whose ends make it due earlier.
const WAIT_MS: i64 = 60_000;

/// A page to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageToCapture {
    /// Its number.
    pub number: u32,
    /// Its address.
    pub url: String,
    /// When its capture began, if a process has begun it before, so that it may have a grab that is not noted.
    pub started_at: Option<Timestamp>,
}

/// What is to be done for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteStep {
    /// Read a sitemap.
    Sitemap {
        /// Its place among the sitemaps of the job.
        index: u32,
        /// Its address.
        address: String,
    },
    /// Capture a page.
    Page(PageToCapture),
}

/// A leased job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteTurn {
    /// The job, without the values of secret options.
    pub site: Site,
    /// The secret options of its captures, encrypted.
    pub secrets: Option<Vec<u8>>,
    /// What is to be done.
    pub step: SiteStep,
}

/// Outcome of leasing a job that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeasedSite {
    /// A step is to be done.
    Turn(Box<SiteTurn>),
    /// It waits for the end of captures.
    Waits,
    /// It has ended.
    Finished(Box<FinishedSite>),
}

struct LeaseSite {
    site: SiteId,
    now: Timestamp,
    until: Timestamp,
    text: SiteText,
}

impl Sites<'_> {
    /// Leases a job that is still due, until `until`. `None` if it is not due any more, or if another process has leased it. A job
    /// that cannot be processed is set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn lease(
        self,
        site: SiteId,
        now: Timestamp,
        until: Timestamp,
        text: SiteText,
    ) -> Result<Option<LeasedSite>> {
        let leased = self.store.database.write(LeaseSite { site, now, until, text }).await;
        Ok(self.store.set_aside.unless_row_fails(DUE, &site.0, now, leased)?.flatten())
    }
}

impl Transaction for LeaseSite {
    type Outcome = Option<LeasedSite>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<LeasedSite>> {
        let row = site::Entity::find_by_id(self.site.0)
            .filter(site::Column::NextAt.lte(self.now.as_ms()))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .one(tx)
            .await?;
        let Some(mut row) = row else { return Ok(None) };
        let is_too_old = self.now >= Timestamp::from_ms(row.created_at) + LONGEST_OPEN;
        if site::read_state(row.state)?.is_open() && (is_too_old || !has_access(tx, &row, self.now).await?) {
            row = stop(tx, &row, SiteState::Canceled, None, SkipReason::Canceled, self.now).await?;
        }
        let Some(step) = next_step(tx, &row).await? else {
            if let Some(finished) = settle(tx, &row, self.now, self.text).await? {
                return Ok(Some(LeasedSite::Finished(Box::new(finished))));
            }
            set_due(tx, &row, self.now.as_ms() + WAIT_MS, row.paced_until).await?;
            return Ok(Some(LeasedSite::Waits));
        };
        // Captures that end meanwhile do not make it due before the end of the lease.
        set_due(tx, &row, self.until.as_ms(), self.until.as_ms()).await?;
        let site = read(tx, &row).await?;
        Ok(Some(LeasedSite::Turn(Box::new(SiteTurn { site, secrets: row.secrets, step }))))
    }
}

/// Whether the team is active, and the app that created the job has access.
async fn has_access(tx: &Tx, row: &site::Model, now: Timestamp) -> Result<bool> {
    let active = team::Entity::find_by_id(row.team_id).filter(team::Column::Status.eq(ACTIVE));
    let apps = Inactive::find(tx, [row.grant_id], now).await?;
    Ok(!apps.contains(row.grant_id) && active.count(tx).await? > 0)
}

/// Sets when a job is due, and until when its site is asked for nothing.
pub(super) async fn set_due(tx: &Tx, row: &site::Model, next_at: i64, paced_until: i64) -> Result<()> {
    site::Entity::update_many()
        .col_expr(site::Column::NextAt, Expr::value(next_at))
        .col_expr(site::Column::PacedUntil, Expr::value(paced_until))
        .filter(site::Column::Id.eq(row.id))
        .filter(site::Column::FinishedAt.is_null())
        .exec(tx)
        .await?;
    Ok(())
}

/// What is to be done first. `None`: nothing before a capture has ended.
async fn next_step(tx: &Tx, row: &site::Model) -> Result<Option<SiteStep>> {
    let of_state = |state: PageState| {
        site_page::Entity::find()
            .filter(site_page::Column::SiteId.eq(row.id))
            .filter(site_page::Column::State.eq(site_page::state(state)))
    };
    let interrupted = of_state(PageState::Capturing).filter(site_page::Column::GrabId.is_null());
    if let Some(page) = interrupted.order_by_asc(site_page::Column::Number).one(tx).await? {
        return to_capture(page).map(Some);
    }
    if !site::read_state(row.state)?.is_open() {
        return Ok(None);
    }
    if has_sitemaps(row)? {
        let index = read_count(row.documents_read)?;
        let mut documents = site::read_texts(&row.documents)?.into_iter();
        let address = usize::try_from(index).ok().and_then(|index| documents.nth(index));
        let address = address.ok_or(Error::Inconsistent("site without a sitemap that it has"))?;
        return Ok(Some(SiteStep::Sitemap { index, address }));
    }
    if of_state(PageState::Capturing).count(tx).await? >= u64::from(OPEN_GRABS) {
        return Ok(None);
    }
    match of_state(PageState::Waiting).order_by_asc(site_page::Column::Number).one(tx).await? {
        Some(page) => to_capture(page).map(Some),
        None => Ok(None),
    }
}

fn to_capture(page: site_page::Model) -> Result<SiteStep> {
    let (number, started_at) = (read_count(page.number)?, read_time(page.started_at));
    Ok(SiteStep::Page(PageToCapture { number, url: page.url, started_at }))
}
