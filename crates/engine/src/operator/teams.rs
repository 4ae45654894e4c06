//! All teams.

use grabd_domain::accounts::Email;
use grabd_domain::credits::Balance;
use grabd_domain::limits::USAGE_WINDOW;
use grabd_domain::{Fault, Timestamp};
use grabd_store::{Team, TeamPlace, TeamSummary, TeamsWanted};

use super::Operator;
use crate::core::{Core, inside};

/// Teams on a page.
const PAGE: u32 = 25;

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamsPage {
    /// The newest first.
    pub teams: Vec<TeamRow>,
    /// What to call for the next, older page with; `None` on the last one.
    pub next: Option<TeamPlace>,
}

/// A team in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamRow {
    /// The team.
    pub team: Team,
    /// How many people are in it.
    pub members: u64,
    /// What it can spend.
    pub balance: Balance,
    /// Its live captures that are done, of the last thirty days.
    pub captures: u64,
}

/// A page of the teams that a search finds: by id, by the e-mail address of somebody in it, or by a part of its name. An
/// empty search finds all.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn list_teams(core: &Core, _: &Operator, search: &str, after: Option<TeamPlace>) -> Result<TeamsPage, Fault> {
    let now = core.clock.now();
    let wanted = wanted(search);
    let found = core.store.list_summaries(&wanted, after, PAGE + 1, now - USAGE_WINDOW);
    let mut teams = found.await.map_err(inside("operator.list_teams"))?;
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let has_more = teams.len() > page;
    teams.truncate(page);
    let place = |last: &TeamSummary| TeamPlace { created_at: last.team.created_at, team: last.team.id };
    let next = teams.last().filter(|_| has_more).map(place);
    Ok(TeamsPage { teams: teams.into_iter().map(|summary| row(summary, now)).collect(), next })
}

fn row(summary: TeamSummary, now: Timestamp) -> TeamRow {
    let TeamSummary { team, members, lots, captures } = summary;
    TeamRow { team, members, balance: Balance::of(&lots, now), captures }
}

fn wanted(search: &str) -> TeamsWanted {
    let search = search.trim();
    match (search.parse(), Email::parse(search)) {
        _ if search.is_empty() => TeamsWanted::All,
        (Ok(id), _) => TeamsWanted::Id(id),
        (Err(_), Ok(email)) => TeamsWanted::Of(email),
        (Err(_), Err(_)) => TeamsWanted::Named(search.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_an_id_an_address_or_a_part_of_a_name() {
        let id = "01993e1c-7b1a-7000-8000-0123456789ab";
        let email = Email::parse("ada@example.com").unwrap();
        for (search, expected) in [
            ("", TeamsWanted::All),
            ("  ", TeamsWanted::All),
            (id, TeamsWanted::Id(id.parse().unwrap())),
            (" Ada@Example.com ", TeamsWanted::Of(email)),
            (" Acme Ltd ", TeamsWanted::Named("Acme Ltd".to_owned())),
            ("@", TeamsWanted::Named("@".to_owned())),
        ] {
            assert_eq!(wanted(search), expected, "{search:?}");
        }
    }
}
