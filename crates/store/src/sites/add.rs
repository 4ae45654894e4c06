//! Stores found addresses, each once.

use std::collections::HashSet;

use grabd_domain::Timestamp;
use grabd_domain::ids::{SiteId, SitePageId};
use grabd_domain::site::{
    LISTED_BYTES, LISTED_SKIPPED, MAX_SITEMAPS, PageState, SITEMAP_LIST_BYTES, SKIPPED_BYTES, Scope, SkipReason,
};
use grabd_domain::target::TargetUrl;
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::finish::{FinishedSite, SiteText, settle};
use super::site_ref::lock_site;
use crate::Result;
use crate::areas::Sites;
use crate::database::{Transaction, Tx};
use crate::entities::{site, site_page};

/// Rows of one statement.
const CHUNK: usize = 200;

/// The result of reading a sitemap.
#[derive(Clone, Debug)]
pub struct ReadSitemap {
    /// The job.
    pub site: SiteId,
    /// The place of the sitemap among those of the job.
    pub index: u32,
    /// The addresses of pages in it, in normal form.
    pub pages: Vec<TargetUrl>,
    /// The addresses of other sitemaps in it, in normal form.
    pub sitemaps: Vec<TargetUrl>,
    /// Current time.
    pub now: Timestamp,
    /// Until when the site is asked for nothing.
    pub paced_until: Timestamp,
    /// Composes the message, if the job ends with this.
    pub text: SiteText,
}

impl Sites<'_> {
    /// Stores what a sitemap has, unless it was stored before. Returns the job if it has ended with this.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn add_sitemap(self, read: ReadSitemap) -> Result<Option<FinishedSite>> {
        self.store.database.write(read).await
    }
}

impl Transaction for ReadSitemap {
    type Outcome = Option<FinishedSite>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<FinishedSite>> {
        let Some(row) = lock_site(tx, self.site.0).await? else { return Ok(None) };
        let is_next = i64::from(row.documents_read) == i64::from(self.index);
        if !is_next || !site::read_state(row.state)?.is_open() {
            return Ok(None);
        }
        let is_full = add_pages(tx, &row, &self.pages, Origin { depth: 0, found_on: Some(row.documents_read) }).await?;
        let scope = Scope::of(site::read_site_spec(&row)?.source.address());
        let mut documents = site::read_texts(&row.documents)?;
        for sitemap in self.sitemaps.iter().filter(|sitemap| scope.contains(sitemap)) {
            let bytes: usize = documents.iter().map(String::len).sum();
            let has_room = documents.len() < usize::try_from(MAX_SITEMAPS).unwrap_or(usize::MAX)
                && bytes + sitemap.as_str().len() <= SITEMAP_LIST_BYTES;
            if has_room && !documents.iter().any(|known| known == sitemap.as_str()) {
                documents.push(sitemap.to_string());
            }
        }
        if is_full {
            // No further sitemap has an address that would be captured.
            documents.truncate(usize::try_from(self.index).unwrap_or(usize::MAX).saturating_add(1));
        }
        let changed = site::ActiveModel {
            id: Unchanged(row.id),
            documents: Set(site::texts_json(&documents)?),
            documents_read: Set(row.documents_read.saturating_add(1)),
            next_at: Set(Some(self.paced_until.as_ms())),
            paced_until: Set(self.paced_until.as_ms()),
            ..Default::default()
        };
        let row = changed.update(tx).await?;
        settle(tx, &row, self.now, self.text).await
    }
}

/// Where addresses were found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// How many links lead to them.
    pub(super) depth: i16,
    /// The number of the page, or the index of the sitemap.
    pub(super) found_on: Option<i32>,
}

/// Adds the pages of a locked job that it does not have yet: those to capture as long as it may have more, and some of those that
/// are not captured. Returns whether it has as many as it may have.
pub(super) async fn add_pages(tx: &Tx, row: &site::Model, found: &[TargetUrl], origin: Origin) -> Result<bool> {
    let known: Vec<(Uuid, i32, i16, String)> = site_page::Entity::find()
        .select_only()
        .columns([site_page::Column::Id, site_page::Column::Number, site_page::Column::State, site_page::Column::Url])
        .filter(site_page::Column::SiteId.eq(row.id))
        .into_tuple()
        .all(tx)
        .await?;
    let spec = site::read_site_spec(row)?;
    let scope = Scope::of(spec.source.address());
    let is_skipped = |state: i16| state == site_page::state(PageState::Skipped);
    let mut skipped = known.iter().filter(|(_, _, state, _)| is_skipped(*state)).count();
    let mut accepted = known.len() - skipped;
    let mut last = known.iter().map(|(_, number, ..)| *number).max().unwrap_or(0);
    let mut bytes: usize = known.iter().map(|(.., url)| url.len()).sum();
    let skipped_before = known.iter().filter(|(_, _, state, _)| is_skipped(*state));
    let mut skipped_bytes: usize = skipped_before.map(|(.., url)| url.len()).sum();
    let mut ids: HashSet<Uuid> = known.into_iter().map(|(id, ..)| id).collect();
    let max_pages = usize::try_from(spec.max_pages).unwrap_or(usize::MAX);
    let max_skipped = usize::try_from(LISTED_SKIPPED).unwrap_or(usize::MAX);
    let mut pages = Vec::new();
    for url in found {
        if accepted >= max_pages && skipped >= max_skipped {
            break;
        }
        let id = SitePageId::of(SiteId(row.id), url.as_str()).0;
        if ids.contains(&id) || bytes + url.as_str().len() > LISTED_BYTES {
            continue;
        }
        let reason = spec.refuses(&scope, url).or((accepted >= max_pages).then_some(SkipReason::MaxPages));
        match reason {
            Some(_) if skipped >= max_skipped || skipped_bytes + url.as_str().len() > SKIPPED_BYTES => continue,
            Some(_) => {
                skipped += 1;
                skipped_bytes += url.as_str().len();
            }
            None => accepted += 1,
        }
        ids.insert(id);
        bytes += url.as_str().len();
        last += 1;
        pages.push(new_page(id, row.id, last, url, origin, reason));
    }
    let is_full = accepted >= max_pages;
    while !pages.is_empty() {
        let rest = pages.split_off(pages.len().min(CHUNK));
        site_page::Entity::insert_many(pages).exec_without_returning(tx).await?;
        pages = rest;
    }
    Ok(is_full)
}

fn new_page(
    id: Uuid,
    site: Uuid,
    number: i32,
    url: &TargetUrl,
    origin: Origin,
    reason: Option<SkipReason>,
) -> site_page::ActiveModel {
    let state = if reason.is_some() { PageState::Skipped } else { PageState::Waiting };
    site_page::ActiveModel {
        id: Set(id),
        site_id: Set(site),
        number: Set(number),
        url: Set(url.to_string()),
        depth: Set(origin.depth),
        found_on: Set(origin.found_on),
        state: Set(site_page::state(state)),
        skipped: Set(reason.map(site_page::skipped)),
        grab_id: Set(None),
        started_at: Set(None),
        error_code: Set(None),
        error_message: Set(None),
    }
}
