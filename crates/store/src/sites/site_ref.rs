//! A job of a caller, and how its row is read.

use std::collections::HashMap;

use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, SiteId, TeamId};
use grabd_domain::site::{PageCounts, PageState, Site};
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect, Select};
use uuid::Uuid;

use crate::Result;
use crate::database::Tx;
use crate::entities::site::{self, scoped};
use crate::entities::site_page;
use crate::padded::padded;

/// A job of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteRef {
    /// The caller's team.
    pub team: TeamId,
    /// The caller's environment.
    pub environment: Environment,
    /// The grant of a caller that is an app, which sees only what it has created with it.
    pub grant: Option<GrantId>,
    /// The job.
    pub site: SiteId,
}

impl SiteRef {
    /// Selects the job, if the caller sees it.
    pub(super) fn query(&self) -> Select<site::Entity> {
        let &Self { team, environment, grant, site } = self;
        scoped(team, environment, grant).filter(site::Column::Id.eq(site.0))
    }

    /// Reads and locks the job.
    pub(super) async fn lock(&self, tx: &Tx) -> Result<Option<site::Model>> {
        Ok(self.query().lock(LockType::Update).one(tx).await?)
    }
}

/// Reads and locks a job.
pub(super) async fn lock_site(tx: &Tx, site: Uuid) -> Result<Option<site::Model>> {
    Ok(site::Entity::find_by_id(site).lock(LockType::Update).one(tx).await?)
}

/// How many pages of each job are in which state.
pub(super) async fn counts<C: ConnectionTrait>(db: &C, sites: Vec<Uuid>) -> Result<HashMap<Uuid, PageCounts>> {
    let mut counts: HashMap<Uuid, PageCounts> = HashMap::new();
    for (site, state, pages) in states(db, sites).await? {
        counts.entry(site).or_default().add(state, pages);
    }
    Ok(counts)
}

/// The number of pages of each job in each state.
pub(super) async fn states<C: ConnectionTrait>(db: &C, sites: Vec<Uuid>) -> Result<Vec<(Uuid, PageState, u32)>> {
    if sites.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<(Uuid, i16, i64)> = site_page::Entity::find()
        .select_only()
        .columns([site_page::Column::SiteId, site_page::Column::State])
        .column_as(site_page::Column::Id.count(), "pages")
        .filter(site_page::Column::SiteId.is_in(padded(sites)))
        .group_by(site_page::Column::SiteId)
        .group_by(site_page::Column::State)
        .into_tuple()
        .all(db)
        .await?;
    let read = |(site, state, pages): (Uuid, i16, i64)| {
        Ok((site, site_page::read_state(state)?, u32::try_from(pages).unwrap_or(u32::MAX)))
    };
    rows.into_iter().map(read).collect()
}

/// Converts a row, with the numbers of its pages.
pub(super) async fn read<C: ConnectionTrait>(db: &C, row: &site::Model) -> Result<Site> {
    let pages = counts(db, vec![row.id]).await?.remove(&row.id).unwrap_or_default();
    site::read(row, pages)
}
