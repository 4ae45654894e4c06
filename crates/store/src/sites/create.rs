//! Creates jobs.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::{SiteId, SitePageId, TeamId};
use grabd_domain::site::{KEPT_PAGES, KEPT_SITES, PageState, Site, SiteSpec, SiteState, Source};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::site_ref::{counts, read};
use crate::areas::Sites;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::grab::write_spec;
use crate::entities::site::{self, of_team};
use crate::entities::{oauth_grant, site_page};
use crate::padded::padded;
use crate::team_lock::lock_team;
use crate::{Result, codes};

/// A job to create.
#[derive(Clone, Debug)]
pub struct NewSite {
    /// Its id.
    pub id: SiteId,
    /// The owning team.
    pub team: TeamId,
    /// The environment of its grabs.
    pub environment: Environment,
    /// Who creates it.
    pub creator: Principal,
    /// What it captures.
    pub spec: SiteSpec,
    /// The secret options of its captures, encrypted.
    pub secrets: Option<Vec<u8>>,
    /// How many open jobs the team may have in the environment.
    pub open_limit: u64,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of creating a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateSiteOutcome {
    /// It was created.
    Created(Box<Site>),
    /// Nothing was created: the team has as many open jobs as it may have in this environment.
    TooMany,
    /// Nothing was created: the team does not exist or is inactive.
    TeamInactive,
    /// Nothing was created: the grant of the app has just ended.
    AccessEnded,
}

impl Sites<'_> {
    /// Creates a job, which is due at once. If the team has very many, the oldest ones that have ended are deleted.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn create(self, new: NewSite) -> Result<CreateSiteOutcome> {
        let event = AuditEvent::new("site.create", &new.id, Some(new.team)).with(&new.spec.name);
        let created = |outcome: &CreateSiteOutcome| matches!(outcome, CreateSiteOutcome::Created(_));
        self.store.write_audited(new, event, created).await
    }
}

impl Transaction for NewSite {
    type Outcome = CreateSiteOutcome;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<CreateSiteOutcome> {
        // The lock makes the count exact under concurrent creates.
        if lock_team(tx, self.team).await?.is_none() {
            return Ok(CreateSiteOutcome::TeamInactive);
        }
        let open = of_team(self.team, self.environment).filter(site::Column::FinishedAt.is_null());
        if open.count(tx).await? >= self.open_limit {
            return Ok(CreateSiteOutcome::TooMany);
        }
        if let Some(grant) = self.creator.grant() {
            // The lock conflicts with the end of the grant, which deletes the job.
            let grant = oauth_grant::Entity::find_by_id(grant.0).lock(LockType::KeyShare);
            if grant.one(tx).await?.is_none() {
                return Ok(CreateSiteOutcome::AccessEnded);
            }
        }
        self.delete_oldest(tx).await?;
        site::Entity::insert(self.row()?).exec_without_returning(tx).await?;
        if let Source::Links { start, .. } = &self.spec.source {
            site_page::Entity::insert(first_page(self.id, start.as_str())).exec_without_returning(tx).await?;
        }
        let row = site::Entity::find_by_id(self.id.0).one(tx).await?;
        let row = row.ok_or(crate::Error::Inconsistent("a site that was inserted is missing"))?;
        Ok(CreateSiteOutcome::Created(Box::new(read(tx, &row).await?)))
    }
}

impl NewSite {
    /// Deletes jobs that have ended beyond those that a team keeps, by their number and by that of their pages.
    async fn delete_oldest(&self, tx: &Tx) -> Result<()> {
        let ended: Vec<Uuid> = of_team(self.team, self.environment)
            .select_only()
            .column(site::Column::Id)
            .filter(site::Column::FinishedAt.is_not_null())
            .order_by_desc(site::Column::Id)
            .limit(2 * u64::from(KEPT_SITES))
            .into_tuple()
            .all(tx)
            .await?;
        let counts = counts(tx, ended.clone()).await?;
        let most = u64::from(KEPT_SITES).saturating_sub(self.open_limit);
        let (mut sites, mut pages) = (0, 0);
        let mut is_kept = |site: &Uuid| {
            sites += 1;
            pages += counts.get(site).map_or(0, |counts| u64::from(counts.found));
            sites <= most && pages <= u64::from(KEPT_PAGES)
        };
        let old: Vec<Uuid> = ended.into_iter().filter(|site| !is_kept(site)).collect();
        if !old.is_empty() {
            // Their pages are deleted by cascade.
            site::Entity::delete_many().filter(site::Column::Id.is_in(padded(old))).exec(tx).await?;
        }
        Ok(())
    }

    fn row(&self) -> Result<site::ActiveModel> {
        let SiteSpec { name, source, capture, max_pages, include, exclude, robots, requests_per_minute } = &self.spec;
        let (creator, creator_id) = site::creator(self.creator);
        let (url, sitemap) = match source {
            Source::Links { start, .. } => (Some(start.to_string()), None),
            Source::Sitemap(sitemap) => (None, Some(sitemap.to_string())),
        };
        let documents: Vec<&String> = sitemap.iter().collect();
        Ok(site::ActiveModel {
            id: Set(self.id.0),
            team_id: Set(self.team.0),
            env: Set(codes::environment(self.environment)),
            creator: Set(creator),
            creator_id: Set(creator_id),
            grant_id: Set(self.creator.grant().map(|grant| grant.0)),
            name: Set(name.clone()),
            documents: Set(site::texts_json(&documents)?),
            url: Set(url),
            sitemap: Set(sitemap),
            max_depth: Set(self.spec.max_depth().map(|depth| i16::try_from(depth).unwrap_or(i16::MAX))),
            capture: Set(write_spec(&capture.without_secrets())?),
            secrets: Set(self.secrets.clone()),
            max_pages: Set(i32::try_from(*max_pages).unwrap_or(i32::MAX)),
            include: Set(site::patterns(include)?),
            exclude: Set(site::patterns(exclude)?),
            robots: Set(i16::from(*robots)),
            requests_per_minute: Set(i16::try_from(*requests_per_minute).unwrap_or(i16::MAX)),
            state: Set(site::state(SiteState::Discovering)),
            error_code: Set(None),
            error_message: Set(None),
            documents_read: Set(0),
            created_at: Set(self.now.as_ms()),
            updated_at: Set(self.now.as_ms()),
            finished_at: Set(None),
            next_at: Set(Some(self.now.as_ms())),
            paced_until: Set(self.now.as_ms()),
        })
    }
}

/// The start page.
fn first_page(site: SiteId, url: &str) -> site_page::ActiveModel {
    site_page::ActiveModel {
        id: Set(SitePageId::of(site, url).0),
        site_id: Set(site.0),
        number: Set(1),
        url: Set(url.to_owned()),
        depth: Set(0),
        found_on: Set(None),
        state: Set(site_page::state(PageState::Waiting)),
        skipped: Set(None),
        grab_id: Set(None),
        started_at: Set(None),
        error_code: Set(None),
        error_message: Set(None),
    }
}
