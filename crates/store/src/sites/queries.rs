//! Jobs and their pages, for callers, and those that are due.

use std::collections::{BTreeSet, HashMap};

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, SiteId, SitePageId, TeamId};
use grabd_domain::site::{Site, SitePage};
use sea_orm::{ColumnTrait, Condition, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::site_ref::{SiteRef, counts, read};
use crate::Result;
use crate::areas::Sites;
use crate::codes::{DONE, FAILED};
use crate::entities::grab::{self, read_key};
use crate::entities::site::{self, scoped};
use crate::entities::site_page;
use crate::padded::padded;

/// Kinds of work, whose rows are set aside if they cannot be processed.
pub(super) const DUE: &str = "sites";
pub(super) const PAGES: &str = "site_pages";

/// A page of a list of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteList {
    /// Newest first.
    pub sites: Vec<Site>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// A part of the list of pages of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePageList {
    /// In the order of discovery.
    pub pages: Vec<SitePage>,
    /// Whether there are further ones.
    pub has_more: bool,
}

impl Sites<'_> {
    /// Finds a job of a caller.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find(self, target: SiteRef) -> Result<Option<Site>> {
        let db = self.store.database.reader();
        match target.query().one(db).await? {
            Some(row) => Ok(Some(read(db, &row).await?)),
            None => Ok(None),
        }
    }

    /// Some jobs of a team, or of those that an app has created with its grant, older than one of them.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list(
        self,
        team: TeamId,
        environment: Environment,
        grant: Option<GrantId>,
        after: Option<SiteId>,
        limit: u32,
    ) -> Result<SiteList> {
        let db = self.store.database.reader();
        let mut query = scoped(team, environment, grant);
        if let Some(after) = after {
            query = query.filter(site::Column::Id.lt(after.0));
        }
        // One extra row tells whether there are more.
        let mut rows = query.order_by_desc(site::Column::Id).limit(u64::from(limit) + 1).all(db).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let mut counts = counts(db, rows.iter().map(|row| row.id).collect()).await?;
        let sites = rows.iter().map(|row| site::read(row, counts.remove(&row.id).unwrap_or_default()));
        Ok(SiteList { sites: sites.collect::<Result<_>>()?, has_more })
    }

    /// Some pages of a job, in the order of discovery, after the one with this number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_pages(self, site: SiteId, after: u32, limit: u32) -> Result<SitePageList> {
        let db = self.store.database.reader();
        let Some(row) = site::Entity::find_by_id(site.0).one(db).await? else {
            return Ok(SitePageList { pages: Vec::new(), has_more: false });
        };
        let mut rows = site_page::Entity::find()
            .filter(site_page::Column::SiteId.eq(site.0))
            .filter(site_page::Column::Number.gt(i32::try_from(after).unwrap_or(i32::MAX)))
            .order_by_asc(site_page::Column::Number)
            .limit(u64::from(limit) + 1)
            .all(db)
            .await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let origins = self.origins(&row, &rows).await?;
        let images = self.images(&rows).await?;
        let pages = rows.iter().map(|page| {
            let found_on = page.found_on.and_then(|origin| origins.get(&origin).cloned());
            let image = page.grab_id.and_then(|grab| images.get(&grab)).map(|key| read_key(key)).transpose()?;
            site_page::read(page, found_on, image)
        });
        Ok(SitePageList { pages: pages.collect::<Result<_>>()?, has_more })
    }

    /// The addresses on which pages were found: those of sitemaps by their index, or those of pages by their number.
    async fn origins(self, site: &site::Model, pages: &[site_page::Model]) -> Result<HashMap<i32, String>> {
        if site.sitemap.is_some() {
            return Ok((0..).zip(site::read_texts(&site.documents)?).collect());
        }
        let numbers: BTreeSet<i32> = pages.iter().filter_map(|page| page.found_on).collect();
        if numbers.is_empty() {
            return Ok(HashMap::new());
        }
        let origins: Vec<(i32, String)> = site_page::Entity::find()
            .select_only()
            .columns([site_page::Column::Number, site_page::Column::Url])
            .filter(site_page::Column::SiteId.eq(site.id))
            .filter(site_page::Column::Number.is_in(padded(numbers)))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(origins.into_iter().collect())
    }

    /// The keys of the images of pages, by the ids of their grabs.
    async fn images(self, pages: &[site_page::Model]) -> Result<HashMap<Uuid, String>> {
        let grabs: Vec<Uuid> = pages.iter().filter_map(|page| page.grab_id).collect();
        if grabs.is_empty() {
            return Ok(HashMap::new());
        }
        let images: Vec<(Uuid, Option<String>)> = grab::Entity::find()
            .select_only()
            .columns([grab::Column::Id, grab::Column::ImageKey])
            .filter(grab::Column::Id.is_in(padded(grabs)))
            .filter(grab::Column::Status.eq(DONE))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(images.into_iter().filter_map(|(grab, key)| Some((grab, key?))).collect())
    }

    /// Up to `limit` jobs that are due, longest overdue first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn due(self, now: Timestamp, limit: u32) -> Result<Vec<SiteId>> {
        let due: Vec<Uuid> = site::Entity::find()
            .select_only()
            .column(site::Column::Id)
            .filter(site::Column::NextAt.lte(now.as_ms()))
            .filter(site::Column::Id.is_not_in(padded(self.store.set_aside.keys::<Uuid>(DUE, now))))
            .order_by_asc(site::Column::NextAt)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(due.into_iter().map(SiteId).collect())
    }

    /// Up to `limit` pages whose capture has ended, or was deleted by a retention.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn ended_pages(self, now: Timestamp, limit: u32) -> Result<Vec<SitePageId>> {
        let has_ended =
            Condition::any().add(grab::Column::Status.is_in([DONE, FAILED])).add(grab::Column::Id.is_null());
        let ended: Vec<Uuid> = site_page::Entity::find()
            .select_only()
            .column(site_page::Column::Id)
            .join(JoinType::LeftJoin, site_page::to_grab())
            .filter(site_page::Column::StartedAt.is_not_null())
            .filter(site_page::Column::GrabId.is_not_null())
            .filter(has_ended)
            .filter(site_page::Column::Id.is_not_in(padded(self.store.set_aside.keys::<Uuid>(PAGES, now))))
            .order_by_asc(site_page::Column::StartedAt)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(ended.into_iter().map(SitePageId).collect())
    }

    /// The time since which the job is due that is due longest. `None` if none is.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn oldest_due(self, now: Timestamp) -> Result<Option<Timestamp>> {
        let oldest: Option<i64> = site::Entity::find()
            .select_only()
            .column(site::Column::NextAt)
            .filter(site::Column::NextAt.lte(now.as_ms()))
            .order_by_asc(site::Column::NextAt)
            .limit(1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(oldest.map(Timestamp::from_ms))
    }
}
