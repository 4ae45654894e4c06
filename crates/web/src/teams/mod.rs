//! The teams that a person is in: one file per page, or per form that has none of its own.

pub(crate) mod found;
pub(crate) mod invite;
pub(crate) mod leave;
pub(crate) mod list;
pub(crate) mod members;
pub(crate) mod people;
pub(crate) mod rename;

use grabd_domain::ids::TeamId;
use grabd_domain::teams::NAME_CHARS;
use grabd_engine::accounts::{self, MyTeam, Session, TeamError};

use crate::Web;
use crate::form::{Complaint, Field, Form};
use crate::problem::Problem;

/// The path of the list.
pub(crate) const PATH: &str = "/teams";

const UNKNOWN: &str = "You are in no such team, or what you are looking for is not in it any more.";

/// The path below which everything of a team lies.
pub(crate) fn path(team: TeamId) -> String {
    format!("{PATH}/{team}")
}

/// The path of the page with the people of a team.
pub(crate) fn people_path(team: TeamId) -> String {
    crate::team::path(team, "people")
}

impl Web {
    /// The team that a path names, for whoever is in it.
    ///
    /// # Errors
    /// For everybody else there is no such page.
    pub(crate) async fn my_team(&self, session: &Session, team: &str) -> Result<MyTeam, Problem> {
        let Ok(team) = team.parse() else { return Err(Problem::not_found(UNKNOWN)) };
        Ok(accounts::find_team(&self.core, session.person.id, team).await?)
    }
}

impl From<TeamError> for Problem {
    fn from(error: TeamError) -> Self {
        match error {
            TeamError::NotIn | TeamError::Unknown => Self::not_found(UNKNOWN),
            TeamError::NotOwner => Self::not_allowed(
                "Only owners may do this",
                "You are a member of this team. Its owners decide who is in it and what it is called.",
                "Nothing was changed. The team’s page shows who they are.",
            ),
            TeamError::LastOwner => Self::in_the_way(
                "A team needs an owner",
                "You are the only one. Without an owner, nobody could invite or remove people any more.",
                "Nothing was changed. Make somebody else an owner first.",
            ),
            TeamError::AlreadyIn => Self::in_the_way("They are in the team already", "Nothing was changed.", ""),
            TeamError::Full => Self::in_the_way(
                "There is no room for more",
                "There are as many as there may be.",
                "Nothing was changed. Remove what is not needed any more, or ask whoever runs this grabd.",
            ),
            TeamError::Name(error) => Self::bad_request("The name will not do", format!("The name {error}."), ""),
            TeamError::Inside(fault) => fault.into(),
        }
    }
}

/// The field for a team's or key's name.
pub(crate) fn name_field(
    label: &'static str,
    hint: &'static str,
    form: Option<&Form>,
    complaints: &[Complaint],
) -> Field {
    let field = Field {
        name: "name",
        label,
        kind: "text",
        autocomplete: "off",
        longest: u32::try_from(*NAME_CHARS.end()).unwrap_or(u32::MAX),
        hint,
        value: form.map(|form| form.one("name").to_owned()).unwrap_or_default(),
        error: None,
    };
    field.with_errors(complaints)
}
