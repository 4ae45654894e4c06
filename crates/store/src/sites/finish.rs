//! Decides whether a job has ended, and enqueues the message about it.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{DeliveryId, EndpointId, GrantId, SiteId};
use grabd_domain::site::{PageState, Site, SiteError, SiteState, SkipReason};
use grabd_domain::webhooks::Event;
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::sea_query::Expr;
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder};
use uuid::Uuid;

use super::site_ref::{lock_site, read, states};
use crate::Result;
use crate::areas::Sites;
use crate::database::{Transaction, Tx};
use crate::entities::{site, site_page};
use crate::low_balance::find_recipients;
use crate::team_name::team_name;
use crate::webhooks::enqueue::enqueue_for_team;

/// Composes the webhook message about a job that has ended.
pub type SiteText = fn(&Site, DeliveryId, Timestamp) -> String;

/// A job that has ended with this change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedSite {
    /// The job, whose webhook messages are enqueued.
    pub site: Site,
}

/// Why a job stops before all pages were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteStop {
    /// Its sitemap, or the robots.txt of its start page, cannot be read.
    Failed(SiteError),
    /// The team has no credits.
    OutOfCredits(SiteError),
    /// The team is suspended, or the app that created the job has no access.
    NoAccess,
}

/// A job that this call has stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoppedSite {
    /// The job, if it has ended with this.
    pub finished: Option<FinishedSite>,
    /// The job and the name of its team, if that has run out of credits.
    pub out_of_credits: Option<(Site, String)>,
    /// Who gets mail about it.
    pub recipients: Vec<Email>,
}

struct StopSite {
    site: SiteId,
    why: SiteStop,
    now: Timestamp,
    text: SiteText,
}

impl Sites<'_> {
    /// Stops an open job: waiting pages, and one whose grab could not be created, are not captured any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn stop(self, site: SiteId, why: SiteStop, now: Timestamp, text: SiteText) -> Result<StoppedSite> {
        self.store.database.write(StopSite { site, why, now, text }).await
    }
}

impl Transaction for StopSite {
    type Outcome = StoppedSite;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<StoppedSite> {
        let Some(row) = lock_site(tx, self.site.0).await? else { return Ok(StoppedSite::default()) };
        let was_open = site::read_state(row.state)?.is_open();
        let (state, error, reason) = match &self.why {
            SiteStop::Failed(error) => (SiteState::Failed, Some(error), SkipReason::Canceled),
            SiteStop::OutOfCredits(error) => (SiteState::OutOfCredits, Some(error), SkipReason::OutOfCredits),
            SiteStop::NoAccess => (SiteState::Canceled, None, SkipReason::Canceled),
        };
        skip_unstarted(tx, row.id, reason).await?;
        let row = match was_open {
            true => stop(tx, &row, state, error, reason, self.now).await?,
            false => row,
        };
        let has_run_out = was_open && state == SiteState::OutOfCredits && row.env == crate::codes::LIVE;
        let finished = settle(tx, &row, self.now, self.text).await?;
        if !has_run_out {
            return Ok(StoppedSite { finished, ..StoppedSite::default() });
        }
        let site = read(tx, &row).await?;
        let (team_name, recipients) = (team_name(tx, site.team).await?, find_recipients(tx, site.team).await?);
        Ok(StoppedSite { finished, out_of_credits: Some((site, team_name)), recipients })
    }
}

/// Changes the state of an open job to one that has ended, and skips the pages that wait. Returns the changed row.
pub(super) async fn stop(
    tx: &Tx,
    row: &site::Model,
    state: SiteState,
    error: Option<&SiteError>,
    reason: SkipReason,
    now: Timestamp,
) -> Result<site::Model> {
    site_page::Entity::update_many()
        .col_expr(site_page::Column::State, Expr::value(site_page::state(PageState::Skipped)))
        .col_expr(site_page::Column::Skipped, Expr::value(site_page::skipped(reason)))
        .filter(site_page::Column::SiteId.eq(row.id))
        .filter(site_page::Column::State.eq(site_page::state(PageState::Waiting)))
        .exec(tx)
        .await?;
    let changed = site::ActiveModel {
        id: Unchanged(row.id),
        state: Set(site::state(state)),
        error_code: Set(error.map(|error| error.code.clone())),
        error_message: Set(error.map(|error| error.message.clone())),
        updated_at: Set(now.as_ms()),
        ..Default::default()
    };
    Ok(changed.update(tx).await?)
}

/// Skips pages whose capture has begun, and has no grab.
async fn skip_unstarted(tx: &Tx, site: Uuid, reason: SkipReason) -> Result<()> {
    site_page::Entity::update_many()
        .col_expr(site_page::Column::State, Expr::value(site_page::state(PageState::Skipped)))
        .col_expr(site_page::Column::Skipped, Expr::value(site_page::skipped(reason)))
        .col_expr(site_page::Column::StartedAt, Expr::value(Option::<i64>::None))
        .filter(site_page::Column::SiteId.eq(site))
        .filter(site_page::Column::State.eq(site_page::state(PageState::Capturing)))
        .filter(site_page::Column::GrabId.is_null())
        .exec(tx)
        .await?;
    Ok(())
}

/// Brings the state of a locked job up to date with its pages. Returns the job if it has ended now.
pub(super) async fn settle(tx: &Tx, row: &site::Model, now: Timestamp, text: SiteText) -> Result<Option<FinishedSite>> {
    if row.finished_at.is_some() {
        return Ok(None);
    }
    let counts = states(tx, vec![row.id]).await?;
    let number =
        |of: PageState| counts.iter().filter(|(_, state, _)| *state == of).map(|(.., pages)| *pages).sum::<u32>();
    let state = site::read_state(row.state)?;
    let reads_sitemaps = state.is_open() && has_sitemaps(row)?;
    let waits = state.is_open() && number(PageState::Waiting) > 0;
    if number(PageState::Capturing) == 0 && !waits && !reads_sitemaps {
        return end(tx, row, state, number(PageState::Done), now, text).await.map(Some);
    }
    if state == SiteState::Discovering {
        let accepted: u32 = PageState::ALL.into_iter().filter(|state| *state != PageState::Skipped).map(number).sum();
        let is_full = i64::from(accepted) >= i64::from(row.max_pages);
        if !reads_sitemaps && (is_full || !has_links_to_read(tx, row).await?) {
            let changed = site::ActiveModel {
                id: Unchanged(row.id),
                state: Set(site::state(SiteState::Capturing)),
                updated_at: Set(now.as_ms()),
                ..Default::default()
            };
            changed.update(tx).await?;
        }
    }
    Ok(None)
}

/// Whether there are sitemaps that were not read.
pub(super) fn has_sitemaps(row: &site::Model) -> Result<bool> {
    let documents = site::read_texts(&row.documents)?.len();
    Ok(usize::try_from(row.documents_read).unwrap_or(usize::MAX) < documents)
}

/// Whether pages are still to be captured whose links are followed.
async fn has_links_to_read(tx: &Tx, row: &site::Model) -> Result<bool> {
    let Some(max_depth) = row.max_depth else { return Ok(false) };
    let open = [PageState::Waiting, PageState::Capturing].map(site_page::state);
    let pages = site_page::Entity::find()
        .filter(site_page::Column::SiteId.eq(row.id))
        .filter(site_page::Column::State.is_in(open))
        .filter(site_page::Column::Depth.lt(max_depth));
    Ok(pages.count(tx).await? > 0)
}

/// Ends a job whose pages have all ended.
async fn end(
    tx: &Tx,
    row: &site::Model,
    state: SiteState,
    captured: u32,
    now: Timestamp,
    text: SiteText,
) -> Result<FinishedSite> {
    let mut changed = site::ActiveModel {
        id: Unchanged(row.id),
        updated_at: Set(now.as_ms()),
        finished_at: Set(Some(now.as_ms())),
        next_at: Set(None),
        // Nothing is captured any more.
        secrets: Set(None),
        ..Default::default()
    };
    if state.is_open() {
        let is_done = captured > 0;
        changed.state = Set(site::state(if is_done { SiteState::Done } else { SiteState::Failed }));
        if !is_done {
            let SiteError { code, message } = first_error(tx, row.id).await?;
            (changed.error_code, changed.error_message) = (Set(Some(code)), Set(Some(message)));
        }
    }
    let row = changed.update(tx).await?;
    let site = read(tx, &row).await?;
    if site.environment == Environment::Live {
        enqueue(tx, &site, now, text).await?;
    }
    Ok(FinishedSite { site })
}

/// Why nothing was captured: the error of the first page that failed, if one did.
async fn first_error(tx: &Tx, site: Uuid) -> Result<SiteError> {
    let failed = site_page::Entity::find()
        .filter(site_page::Column::SiteId.eq(site))
        .filter(site_page::Column::State.eq(site_page::state(PageState::Failed)))
        .order_by_asc(site_page::Column::Number)
        .one(tx)
        .await?;
    let error = failed.and_then(|page| site::read_error(page.error_code.as_ref(), page.error_message.as_ref()));
    let none = || {
        let message = "No page was captured: none was found, or each one that was found is skipped.";
        SiteError::new(SiteError::NO_PAGES, &message)
    };
    Ok(error.unwrap_or_else(none))
}

/// Enqueues the webhook messages about a job that has ended.
async fn enqueue(tx: &Tx, site: &Site, now: Timestamp, text: SiteText) -> Result<()> {
    let message = |endpoint: EndpointId| {
        // A deterministic id: a job ends once, so that an endpoint gets one message about it.
        let name = [Event::SiteFinished.as_str().as_bytes(), site.id.0.as_bytes()].concat();
        let id = DeliveryId(Uuid::new_v5(&endpoint.0, &name));
        (id, text(site, id, now))
    };
    // An app sees only the jobs that it has created.
    let creator = site.creator.grant();
    let may_get = |app: Option<GrantId>| app.is_none() || app == creator;
    enqueue_for_team(tx, site.team, Event::SiteFinished, may_get, message, now).await
}
