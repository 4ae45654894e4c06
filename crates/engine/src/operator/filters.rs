//! What operators enter to filter a list: a team and a day.

use grabd_domain::ids::TeamId;
use grabd_domain::{Day, Timestamp};
use grabd_store::operator::TeamFilter;

use crate::error::Error;
use crate::service::Core;

/// Teams that a part of a name may match in a filter.
pub const MAX_FILTER_TEAMS: u32 = 20;

/// What a filter by team matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MatchedTeams {
    /// All teams.
    All,
    /// These, of which there may be none.
    Some(Vec<TeamId>),
    /// More than [`MAX_FILTER_TEAMS`].
    TooMany,
}

impl MatchedTeams {
    /// The teams with this id, or with this text in their names. An empty text matches all teams. The team of an id need not
    /// exist: a deleted team has entries, too.
    pub(super) async fn find(core: &Core, text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::All);
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Some(vec![id]));
        }
        let filter = TeamFilter::NameContains(text.to_owned());
        let found = core.store.operator().list_team_ids(&filter, MAX_FILTER_TEAMS + 1).await?;
        match found.len() > usize::try_from(MAX_FILTER_TEAMS).unwrap_or(usize::MAX) {
            true => Ok(Self::TooMany),
            false => Ok(Self::Some(found)),
        }
    }
}

/// The beginning of a day and that of the next one.
pub(super) fn bounds(day: Option<Day>) -> (Option<Timestamp>, Option<Timestamp>) {
    (day.map(Day::start), day.map(|day| day.next().start()))
}
