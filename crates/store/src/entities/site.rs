//! Sites: jobs that capture many pages of one site.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::{GrantId, KeyId, SiteId, TeamId, UserId};
use grabd_domain::site::{PageCounts, Pattern, Site, SiteError, SiteSpec, SiteState, Source};
use grabd_domain::target::TargetUrl;
use sea_orm::entity::prelude::*;

use super::grab::read_spec;
use crate::codes::{self, read_count, read_time};
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "sites")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) env: i16,
    /// What created it: an API key, a user or an app.
    pub(crate) creator: i16,
    /// The id of the key, user or grant, which may have been deleted, except the grant.
    pub(crate) creator_id: Uuid,
    /// The grant of the app that created the job, which is deleted with it.
    pub(crate) grant_id: Option<Uuid>,
    pub(crate) name: String,
    /// The start page. NULL: the addresses are those of a sitemap.
    pub(crate) url: Option<String>,
    pub(crate) sitemap: Option<String>,
    pub(crate) max_depth: Option<i16>,
    /// The capture spec as JSON.
    pub(crate) capture: String,
    /// The secret options of the capture, encrypted with a key that is not in the database.
    pub(crate) secrets: Option<Vec<u8>>,
    pub(crate) max_pages: i32,
    /// Patterns as JSON.
    pub(crate) include: String,
    pub(crate) exclude: String,
    pub(crate) robots: i16,
    pub(crate) requests_per_minute: i16,
    pub(crate) state: i16,
    /// Why it has stopped, or why it waits while it is open.
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
    /// The addresses of sitemaps as JSON.
    pub(crate) documents: String,
    /// How many of them were read.
    pub(crate) documents_read: i32,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    /// NULL: something may still change.
    pub(crate) finished_at: Option<i64>,
    /// When something is to be done. NULL: nothing more.
    pub(crate) next_at: Option<i64>,
    /// Until then, the site is asked for nothing.
    pub(crate) paced_until: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Jobs visible to a caller: all of the team, or those that an app has created with its grant. Every read or change on behalf of a
/// caller starts from this query.
pub(crate) fn scoped(team: TeamId, environment: Environment, grant: Option<GrantId>) -> Select<Entity> {
    let of_team = of_team(team, environment);
    match grant {
        None => of_team,
        Some(grant) => of_team.filter(Column::GrantId.eq(grant.0)),
    }
}

/// All jobs of a team, which share its limits.
pub(crate) fn of_team(team: TeamId, environment: Environment) -> Select<Entity> {
    Entity::find().filter(Column::TeamId.eq(team.0)).filter(Column::Env.eq(codes::environment(environment)))
}

/// The values of `creator` and `creator_id`.
pub(crate) const fn creator(creator: Principal) -> (i16, Uuid) {
    match creator {
        Principal::Key(key) => (0, key.0),
        Principal::User(user) => (1, user.0),
        Principal::Grant(grant) => (2, grant.0),
    }
}

fn read_creator(code: i16, id: Uuid) -> Result<Principal> {
    let known = [Principal::Key(KeyId(id)), Principal::User(UserId(id)), Principal::Grant(GrantId(id))];
    known
        .into_iter()
        .find(|known| creator(*known).0 == code)
        .ok_or(Error::Inconsistent("unknown creator code of a site"))
}

pub(crate) const fn state(state: SiteState) -> i16 {
    match state {
        SiteState::Discovering => 0,
        SiteState::Capturing => 1,
        SiteState::Done => 2,
        SiteState::Canceled => 3,
        SiteState::Failed => 4,
        SiteState::OutOfCredits => 5,
    }
}

pub(crate) fn read_state(code: i16) -> Result<SiteState> {
    SiteState::ALL
        .into_iter()
        .find(|known| state(*known) == code)
        .ok_or(Error::Inconsistent("unknown state code of a site"))
}

/// The value of a column with patterns.
pub(crate) fn patterns(patterns: &[Pattern]) -> Result<String> {
    let texts: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
    texts_json(&texts)
}

fn read_patterns(json: &str) -> Result<Vec<Pattern>> {
    let parsed: Option<Vec<Pattern>> = read_texts(json)?.iter().map(|text| Pattern::parse(text)).collect();
    parsed.ok_or(Error::Inconsistent("malformed pattern of a site"))
}

/// The value of a column with a list of texts.
pub(crate) fn texts_json<T: AsRef<str>>(texts: &[T]) -> Result<String> {
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    serde_json::to_string(&texts).map_err(|_| Error::Inconsistent("texts of a site cannot be serialized"))
}

pub(crate) fn read_texts(json: &str) -> Result<Vec<String>> {
    serde_json::from_str(json).map_err(|_| Error::Inconsistent("texts of a site cannot be parsed"))
}

fn read_address(text: &str) -> Result<TargetUrl> {
    TargetUrl::restore(text).ok_or(Error::Inconsistent("malformed address of a site"))
}

fn read_source(row: &Model) -> Result<Source> {
    match (&row.url, &row.sitemap, row.max_depth) {
        (Some(url), None, Some(depth)) => {
            Ok(Source::Links { start: read_address(url)?, max_depth: read_count(depth.into())? })
        }
        (None, Some(sitemap), None) => Ok(Source::Sitemap(read_address(sitemap)?)),
        (_, _, _) => Err(Error::Inconsistent("site without a valid source")),
    }
}

/// Converts the columns that a caller has chosen, without the values of secret options.
pub(crate) fn read_site_spec(row: &Model) -> Result<SiteSpec> {
    Ok(SiteSpec {
        name: row.name.clone(),
        source: read_source(row)?,
        capture: read_spec(&row.capture)?,
        max_pages: read_count(row.max_pages)?,
        include: read_patterns(&row.include)?,
        exclude: read_patterns(&row.exclude)?,
        robots: row.robots != 0,
        requests_per_minute: read_count(row.requests_per_minute.into())?,
    })
}

/// An error of a job or a page.
pub(crate) fn read_error(code: Option<&String>, message: Option<&String>) -> Option<SiteError> {
    let (code, message) = code.zip(message)?;
    Some(SiteError { code: code.clone(), message: message.clone() })
}

/// Converts a row.
pub(crate) fn read(row: &Model, pages: PageCounts) -> Result<Site> {
    Ok(Site {
        id: SiteId(row.id),
        team: TeamId(row.team_id),
        environment: codes::read_environment(row.env)?,
        creator: read_creator(row.creator, row.creator_id)?,
        spec: read_site_spec(row)?,
        state: read_state(row.state)?,
        error: read_error(row.error_code.as_ref(), row.error_message.as_ref()),
        pages,
        created_at: Timestamp::from_ms(row.created_at),
        updated_at: Timestamp::from_ms(row.updated_at),
        finished_at: read_time(row.finished_at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_what_was_written() {
        for known in SiteState::ALL {
            assert_eq!(read_state(state(known)).unwrap(), known);
        }
        let id = Uuid::from_u128(7);
        for known in [Principal::Key(KeyId(id)), Principal::User(UserId(id)), Principal::Grant(GrantId(id))] {
            let (code, id) = creator(known);
            assert_eq!(read_creator(code, id).unwrap(), known);
        }
        assert!(read_state(6).is_err() && read_creator(3, id).is_err());
    }

    #[test]
    fn patterns_are_read_as_what_was_written() {
        let known: Vec<Pattern> = ["/a/*", "*\"?b=*"].iter().filter_map(|text| Pattern::parse(text)).collect();
        assert_eq!(known.len(), 2);
        assert_eq!(read_patterns(&patterns(&known).unwrap()).unwrap(), known);
        assert!(read_patterns("[\"a\"]").is_err() && read_patterns("5").is_err());
    }
}
