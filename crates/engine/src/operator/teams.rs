//! The list of all teams.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credits::Balance;
use grabd_domain::limits::USAGE_WINDOW;
use grabd_store::accounts::Team;
use grabd_store::operator::{TeamCursor, TeamFilter, TeamSummary};

use super::Operator;
use crate::error::Error;
use crate::service::Core;

/// Teams on a page.
const PAGE: u32 = 25;

/// A page of teams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamsPage {
    /// Newest first.
    pub teams: Vec<TeamRow>,
    /// Cursor of the next, older page; `None` on the last page.
    pub next: Option<TeamCursor>,
}

/// A team in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamRow {
    /// The team.
    pub team: Team,
    /// Number of members.
    pub members: u64,
    /// Spendable credits.
    pub balance: Balance,
    /// Done live grabs of the last 30 days.
    pub captures: u64,
}

/// A page of the teams that match a search: by id, by the e-mail address of a member, or by a part of the name. An
/// empty search matches all teams.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "operator.list_teams", skip_all)]
pub async fn list_teams(
    core: &Core,
    _: &Operator,
    search: &str,
    after: Option<TeamCursor>,
) -> Result<TeamsPage, Error> {
    let now = core.clock.now();
    let wanted = parse_search(search);
    let found = core.store.operator().list_summaries(&wanted, after, PAGE + 1, now - USAGE_WINDOW);
    let mut teams = found.await?;
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let has_more = teams.len() > page;
    teams.truncate(page);
    let place = |last: &TeamSummary| TeamCursor { created_at: last.team.created_at, team: last.team.id };
    let next = teams.last().filter(|_| has_more).map(place);
    Ok(TeamsPage { teams: teams.into_iter().map(|summary| row(summary, now)).collect(), next })
}

fn row(summary: TeamSummary, now: Timestamp) -> TeamRow {
    let TeamSummary { team, members, lots, captures } = summary;
    TeamRow { team, members, balance: Balance::of(&lots, now), captures }
}

fn parse_search(search: &str) -> TeamFilter {
    let search = search.trim();
    match (search.parse(), Email::parse(search)) {
        _ if search.is_empty() => TeamFilter::All,
        (Ok(id), _) => TeamFilter::Id(id),
        (Err(_), Ok(email)) => TeamFilter::MemberEmail(email),
        (Err(_), Err(_)) => TeamFilter::NameContains(search.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_is_parsed_as_id_address_or_part_of_a_name() {
        let id = "01993e1c-7b1a-7000-8000-0123456789ab";
        let email = Email::parse("ada@example.com").unwrap();
        for (search, expected) in [
            ("", TeamFilter::All),
            ("  ", TeamFilter::All),
            (id, TeamFilter::Id(id.parse().unwrap())),
            (" Ada@Example.com ", TeamFilter::MemberEmail(email)),
            (" Acme Ltd ", TeamFilter::NameContains("Acme Ltd".to_owned())),
            ("@", TeamFilter::NameContains("@".to_owned())),
        ] {
            assert_eq!(parse_search(search), expected, "{search:?}");
        }
    }
}
