//! Stores the results of captures that have ended, and the links of captured pages.

use grabd_domain::Timestamp;
use grabd_domain::capture::FileKind;
use grabd_domain::grabs::{Grab, GrabFile, State};
use grabd_domain::ids::SitePageId;
use grabd_domain::site::{PageState, Scope, SiteError, normal_address};
use grabd_domain::target::TargetUrl;
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::sea_query::LockType;
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::add::{Origin, add_pages};
use super::finish::{FinishedSite, SiteText, settle};
use super::queries::PAGES;
use super::site_ref::lock_site;
use super::turn::set_due;
use crate::Result;
use crate::areas::Sites;
use crate::codes::{DONE, FAILED};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, site, site_page};

/// The links of a captured page that are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLinks {
    /// The file with them. `None` if it was not made.
    pub file: Option<GrabFile>,
}

/// The addresses that a captured page links to, in normal form, or why they are not known.
pub type FoundLinks = std::result::Result<Vec<TargetUrl>, SiteError>;

struct FinishPage {
    page: SitePageId,
    found: FoundLinks,
    now: Timestamp,
    text: SiteText,
}

impl Sites<'_> {
    /// The links of a page whose capture is done. `None` if they are not followed, as those of a page that has led to another site,
    /// or if its capture is not done. A page that cannot be processed is set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn links_of(self, page: SitePageId, now: Timestamp) -> Result<Option<PageLinks>> {
        let found = self.find_links(page).await;
        Ok(self.store.set_aside.unless_row_fails(PAGES, &page.0, now, found)?.flatten())
    }

    async fn find_links(self, page: SitePageId) -> Result<Option<PageLinks>> {
        let db = self.store.database.reader();
        let Some(page) = site_page::Entity::find_by_id(page.0).one(db).await? else { return Ok(None) };
        let Some(row) = site::Entity::find_by_id(page.site_id).one(db).await? else { return Ok(None) };
        let Some(id) = page.grab_id.filter(|_| follows(&row, &page)) else { return Ok(None) };
        let Some(found) = grab::Entity::find_by_id(id).one(db).await? else { return Ok(None) };
        if found.status != DONE {
            return Ok(None);
        }
        let State::Done { metadata, .. } = grab::read(found, None)?.state else { return Ok(None) };
        if on_other_site(metadata.final_url.as_deref(), &scope_of(&row)?).is_some() {
            return Ok(None);
        }
        let file = metadata.files.into_iter().find(|file| file.kind == FileKind::Links);
        Ok(Some(PageLinks { file }))
    }

    /// Stores the result of a page whose capture has ended, and the addresses that were found on it, or why they are not known. Returns
    /// the job if it has ended with this. A page that cannot be processed is set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn finish_page(
        self,
        page: SitePageId,
        found: FoundLinks,
        now: Timestamp,
        text: SiteText,
    ) -> Result<Option<FinishedSite>> {
        let finished = self.store.database.write(FinishPage { page, found, now, text }).await;
        Ok(self.store.set_aside.unless_row_fails(PAGES, &page.0, now, finished)?.flatten())
    }
}

/// Whether the links of a page are followed.
fn follows(site: &site::Model, page: &site_page::Model) -> bool {
    site.max_depth.is_some_and(|depth| page.depth < depth)
}

fn scope_of(site: &site::Model) -> Result<Scope> {
    Ok(Scope::of(site::read_site_spec(site)?.source.address()))
}

/// What is said of a page that has led to another site. `None` if it has not.
fn on_other_site(final_url: Option<&str>, scope: &Scope) -> Option<SiteError> {
    let end = final_url.and_then(normal_address).filter(|end| !scope.contains(end))?;
    let message = format!(
        "The capture shows a page of another site, to which this one led: {}. Its links are not followed.",
        end.host()
    );
    Some(SiteError::new(SiteError::OTHER_SITE, &message))
}

impl Transaction for FinishPage {
    type Outcome = Option<FinishedSite>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<FinishedSite>> {
        let of_page: Option<Uuid> = site_page::Entity::find_by_id(self.page.0)
            .select_only()
            .column(site_page::Column::SiteId)
            .into_tuple()
            .one(tx)
            .await?;
        let Some(of_page) = of_page else { return Ok(None) };
        let Some(site) = lock_site(tx, of_page).await? else { return Ok(None) };
        let page = site_page::Entity::find_by_id(self.page.0)
            .filter(site_page::Column::State.eq(site_page::state(PageState::Capturing)))
            .lock(LockType::Update)
            .one(tx)
            .await?;
        let Some((page, id)) = page.and_then(|page| page.grab_id.map(|id| (page, id))) else { return Ok(None) };
        let found = grab::Entity::find_by_id(id).one(tx).await?;
        let (state, error) = match found {
            None => {
                let message = "The capture was deleted before its result was noted.";
                (PageState::Failed, Some(SiteError::new("not_found", &message)))
            }
            Some(row) if row.status == DONE || row.status == FAILED => {
                result_of(&grab::read(row, None)?, &scope_of(&site)?, self.found.as_ref().err())
            }
            Some(_) => return Ok(None),
        };
        let (code, message) = error.map(|error| (error.code, error.message)).unzip();
        let changed = site_page::ActiveModel {
            id: Unchanged(page.id),
            state: Set(site_page::state(state)),
            started_at: Set(None),
            error_code: Set(code),
            error_message: Set(message),
            ..Default::default()
        };
        changed.update(tx).await?;
        let is_open = site::read_state(site.state)?.is_open();
        if let Ok(found) = &self.found
            && is_open
            && state == PageState::Done
            && follows(&site, &page)
        {
            let origin = Origin { depth: page.depth.saturating_add(1), found_on: Some(page.number) };
            add_pages(tx, &site, found, origin).await?;
        }
        set_due(tx, &site, site.paced_until.max(self.now.as_ms()), site.paced_until).await?;
        settle(tx, &site, self.now, self.text).await
    }
}

/// The state of a page whose capture has ended, with why it has failed, or what is to be said of a page that was captured. `unread`:
/// why its links are not known.
fn result_of(grab: &Grab, scope: &Scope, unread: Option<&SiteError>) -> (PageState, Option<SiteError>) {
    match &grab.state {
        State::Failed { failure, .. } => {
            (PageState::Failed, Some(SiteError::new(failure.reason.code().as_str(), &failure.message)))
        }
        State::Done { metadata, .. } => {
            let other_site = on_other_site(metadata.final_url.as_deref(), scope);
            (PageState::Done, other_site.or_else(|| unread.cloned()))
        }
        State::Pending | State::Processing => (PageState::Done, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_that_has_led_to_another_site_says_so() {
        let scope = Scope::of(&normal_address("https://www.example.com/").unwrap());
        for url in [None, Some("https://example.com/a"), Some("http://shop.example.com/#b"), Some("about:blank")] {
            assert_eq!(on_other_site(url, &scope), None, "{url:?}");
        }
        let error = on_other_site(Some("https://example.org/sign-in?to=a"), &scope).unwrap();
        assert!(error.code == "other_site" && error.message.contains("led: example.org."), "{error:?}");
        let long = format!("https://{}.example.org/", ["a".repeat(60), "b".repeat(60), "c".repeat(60)].join("."));
        let error = on_other_site(Some(&long), &scope).unwrap();
        assert!(error.message.len() <= SiteError::MESSAGE_BYTES, "{error:?}");
    }
}
