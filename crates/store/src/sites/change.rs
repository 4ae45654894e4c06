//! Cancels and deletes jobs.

use grabd_domain::Timestamp;
use grabd_domain::site::{Site, SiteState, SkipReason};
use sea_orm::EntityTrait;

use super::finish::{FinishedSite, SiteText, settle, stop};
use super::site_ref::{SiteRef, read};
use crate::Result;
use crate::areas::Sites;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::site;

struct CancelSite {
    target: SiteRef,
    now: Timestamp,
    text: SiteText,
}

struct RemoveSite {
    target: SiteRef,
}

impl Sites<'_> {
    /// Cancels a job and returns it: waiting pages are not captured any more, and captures that run end as usual. One that has
    /// ended is returned as it is. With what has finished, if this was the end of the job. `None` when the caller has no such job.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn cancel(
        self,
        target: SiteRef,
        now: Timestamp,
        text: SiteText,
    ) -> Result<Option<(Site, Option<FinishedSite>)>> {
        let event = AuditEvent::new("site.cancel", &target.site, Some(target.team));
        let canceled = |outcome: &Option<(Site, Option<FinishedSite>)>| outcome.is_some();
        self.store.write_audited(CancelSite { target, now, text }, event, canceled).await
    }

    /// Deletes a job with its list of pages. Their grabs stay. `false` when the caller has no such job.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove(self, target: SiteRef) -> Result<bool> {
        let event = AuditEvent::new("site.delete", &target.site, Some(target.team));
        self.store.write_audited(RemoveSite { target }, event, |removed: &bool| *removed).await
    }
}

impl Transaction for CancelSite {
    type Outcome = Option<(Site, Option<FinishedSite>)>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Self::Outcome> {
        let Some(row) = self.target.lock(tx).await? else { return Ok(None) };
        if !site::read_state(row.state)?.is_open() {
            return Ok(Some((read(tx, &row).await?, None)));
        }
        let row = stop(tx, &row, SiteState::Canceled, None, SkipReason::Canceled, self.now).await?;
        let finished = settle(tx, &row, self.now, self.text).await?;
        let site = match &finished {
            Some(finished) => finished.site.clone(),
            None => read(tx, &row).await?,
        };
        Ok(Some((site, finished)))
    }
}

impl Transaction for RemoveSite {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Some(row) = self.target.lock(tx).await? else { return Ok(false) };
        // Its pages are deleted by cascade.
        site::Entity::delete_by_id(row.id).exec(tx).await?;
        Ok(true)
    }
}
