//! Captures pages: notes that a capture begins, its grab, and that there is none.

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrabId, SiteId};
use grabd_domain::site::{PageState, SiteError, SiteState, SkipReason};
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::sea_query::LockType;
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::finish::{FinishedSite, SiteText, settle};
use super::site_ref::lock_site;
use super::turn::set_due;
use crate::Result;
use crate::areas::Sites;
use crate::database::{Transaction, Tx};
use crate::entities::{site, site_page};

/// A page of a job that a process captures.
#[derive(Clone, Copy, Debug)]
pub struct PageAttempt {
    /// The job.
    pub site: SiteId,
    /// The number of the page.
    pub number: u32,
    /// Current time.
    pub now: Timestamp,
    /// When the job is due again, before which its site is asked for nothing.
    pub paced_until: Timestamp,
}

/// How a page ends that has no grab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageEnd {
    /// None could be created.
    Failed(SiteError),
    /// It is not captured.
    Skipped(SkipReason),
    /// It waits again: a limit refuses its grab for now. The job has this error until a grab is created.
    Delayed(SiteError),
}

struct StartPage(PageAttempt);

struct AttachGrab {
    attempt: PageAttempt,
    grab: GrabId,
}

struct EndPage {
    attempt: PageAttempt,
    end: PageEnd,
    text: SiteText,
}

impl Sites<'_> {
    /// Notes that the capture of a waiting page begins. `false` if the job has ended, or if the page is not waiting any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn start_page(self, attempt: PageAttempt) -> Result<bool> {
        self.store.database.write(StartPage(attempt)).await
    }

    /// Notes the grab of a page whose capture has begun. `false` if it has one, or has ended.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn attach_grab(self, attempt: PageAttempt, grab: GrabId) -> Result<bool> {
        self.store.database.write(AttachGrab { attempt, grab }).await
    }

    /// Ends a page that has no grab. Returns the job if it has ended with this.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn end_page(self, attempt: PageAttempt, end: PageEnd, text: SiteText) -> Result<Option<FinishedSite>> {
        self.store.database.write(EndPage { attempt, end, text }).await
    }

    /// Lets the step of a job be repeated at this time.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn delay(self, site: SiteId, until: Timestamp) -> Result<()> {
        self.store.database.write(DelaySite { site, until }).await
    }
}

struct DelaySite {
    site: SiteId,
    until: Timestamp,
}

/// Locks the job of a page, and then the page, if it has no grab and has one of these states.
async fn lock_page(
    tx: &Tx,
    attempt: PageAttempt,
    states: &[PageState],
) -> Result<Option<(site::Model, site_page::Model)>> {
    let Some(site) = lock_site(tx, attempt.site.0).await? else { return Ok(None) };
    let page = site_page::Entity::find()
        .filter(site_page::Column::SiteId.eq(attempt.site.0))
        .filter(site_page::Column::Number.eq(i32::try_from(attempt.number).unwrap_or(i32::MAX)))
        .filter(site_page::Column::State.is_in(states.iter().map(|state| site_page::state(*state))))
        .filter(site_page::Column::GrabId.is_null())
        .lock(LockType::Update)
        .one(tx)
        .await?;
    Ok(page.map(|page| (site, page)))
}

impl Transaction for StartPage {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Self(attempt) = self;
        let Some((site, page)) = lock_page(tx, *attempt, &[PageState::Waiting]).await? else { return Ok(false) };
        if !site::read_state(site.state)?.is_open() {
            return Ok(false);
        }
        let changed = site_page::ActiveModel {
            id: Unchanged(page.id),
            state: Set(site_page::state(PageState::Capturing)),
            started_at: Set(Some(attempt.now.as_ms())),
            ..Default::default()
        };
        changed.update(tx).await?;
        Ok(true)
    }
}

impl Transaction for AttachGrab {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Some((site, page)) = lock_page(tx, self.attempt, &[PageState::Capturing]).await? else {
            return Ok(false);
        };
        let changed =
            site_page::ActiveModel { id: Unchanged(page.id), grab_id: Set(Some(self.grab.0)), ..Default::default() };
        changed.update(tx).await?;
        set_refusal(tx, &site, None).await?;
        let at = self.attempt.paced_until.as_ms();
        set_due(tx, &site, at, at).await?;
        Ok(true)
    }
}

impl Transaction for EndPage {
    type Outcome = Option<FinishedSite>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<FinishedSite>> {
        let open = [PageState::Waiting, PageState::Capturing];
        let Some((site, page)) = lock_page(tx, self.attempt, &open).await? else { return Ok(None) };
        let mut refusal = None;
        let (state, skipped, error) = match &self.end {
            PageEnd::Failed(error) => (PageState::Failed, None, Some(error)),
            PageEnd::Skipped(reason) => (PageState::Skipped, Some(*reason), None),
            PageEnd::Delayed(error) => match reason_of_end(site::read_state(site.state)?) {
                None => {
                    refusal = Some(error);
                    (PageState::Waiting, None, None)
                }
                Some(reason) => (PageState::Skipped, Some(reason), None),
            },
        };
        let changed = site_page::ActiveModel {
            id: Unchanged(page.id),
            state: Set(site_page::state(state)),
            skipped: Set(skipped.map(site_page::skipped)),
            started_at: Set(None),
            error_code: Set(error.map(|error| error.code.clone())),
            error_message: Set(error.map(|error| error.message.clone())),
            ..Default::default()
        };
        changed.update(tx).await?;
        set_refusal(tx, &site, refusal).await?;
        let at = self.attempt.paced_until.as_ms();
        set_due(tx, &site, at, at).await?;
        settle(tx, &site, self.attempt.now, self.text).await
    }
}

/// Sets why an open job waits. The error of one that was stopped says why, and stays.
async fn set_refusal(tx: &Tx, row: &site::Model, refusal: Option<&SiteError>) -> Result<()> {
    let is_unset = row.error_code.is_none() && refusal.is_none();
    if is_unset || !site::read_state(row.state)?.is_open() {
        return Ok(());
    }
    let changed = site::ActiveModel {
        id: Unchanged(row.id),
        error_code: Set(refusal.map(|error| error.code.clone())),
        error_message: Set(refusal.map(|error| error.message.clone())),
        ..Default::default()
    };
    changed.update(tx).await?;
    Ok(())
}

/// Why a page is not captured whose job has ended. `None` if it has not.
const fn reason_of_end(state: SiteState) -> Option<SkipReason> {
    match state {
        SiteState::Discovering | SiteState::Capturing => None,
        SiteState::Done | SiteState::Canceled | SiteState::Failed => Some(SkipReason::Canceled),
        SiteState::OutOfCredits => Some(SkipReason::OutOfCredits),
    }
}

impl Transaction for DelaySite {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let Some(row) = lock_site(tx, self.site.0).await? else { return Ok(()) };
        set_due(tx, &row, self.until.as_ms(), self.until.as_ms()).await
    }
}
