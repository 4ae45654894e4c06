//! The teams of a user: one file per page, or per form without a page of its own.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod export;
pub(crate) mod invite;
pub(crate) mod leave;
pub(crate) mod list;
pub(crate) mod members;
pub(crate) mod people;
pub(crate) mod rename;

use grabd_domain::ids::TeamId;
use grabd_domain::teams::NAME_CHARS;
use grabd_engine::accounts::{self, Session, TeamError, UserTeam};

use crate::Web;
use crate::form::{Field, FieldError, Form};
use crate::problem::Problem;

/// The path of the list.
pub(crate) const PATH: &str = "/teams";

const UNKNOWN: &str = "This team does not exist, you are not a member of it, or the item no longer exists.";

/// The path of a team. All its pages are below it.
pub(crate) fn path(team: TeamId) -> String {
    format!("{PATH}/{team}")
}

/// The path of the page with the people of a team.
pub(crate) fn people_path(team: TeamId) -> String {
    crate::team::path(team, "people")
}

impl Web {
    /// The team that a path names.
    ///
    /// # Errors
    /// Not found, if the team does not exist or the user is not in it.
    pub(crate) async fn my_team(&self, session: &Session, team: &str) -> Result<UserTeam, Problem> {
        let Ok(team) = team.parse() else { return Err(Problem::not_found(UNKNOWN)) };
        match accounts::find_team(&self.core, session.person.id, team).await {
            Err(TeamError::NotMember) => {
                let suspended = self.suspended(session, team).await?;
                Err(suspended.unwrap_or_else(|| TeamError::NotMember.into()))
            }
            found => Ok(found?),
        }
    }
}

impl From<TeamError> for Problem {
    fn from(error: TeamError) -> Self {
        match error {
            TeamError::NotMember | TeamError::NotFound => Self::not_found(UNKNOWN),
            TeamError::Unverified => Self::unverified(),
            TeamError::NotOwner => Self::not_allowed(
                "Owners only",
                "Only owners of this team can manage members, and rename, export or delete the team.",
                "Nothing was changed. The team’s page lists its owners.",
            ),
            TeamError::LastOwner => Self::conflict(
                "A team needs an owner",
                "You are the only owner. Without an owner, nobody could manage the team.",
                "Nothing was changed. Make another member an owner first.",
            ),
            TeamError::AlreadyMember => Self::conflict("Already a member", "Nothing was changed.", ""),
            TeamError::Full => Self::conflict(
                "Limit reached",
                "The maximum number has been reached.",
                "Nothing was changed. Remove what is no longer needed, or contact your administrator.",
            ),
            TeamError::Name(error) => Self::bad_request("Invalid name", format!("The name {error}."), ""),
            TeamError::TeamName(error) => Self::bad_request("Invalid name", format!("The name {error}."), ""),
            TeamError::Internal(fault) => fault.into(),
        }
    }
}

/// The field for a team's or key's name.
pub(crate) fn name_field(label: &'static str, hint: &'static str, form: Option<&Form>, errors: &[FieldError]) -> Field {
    let field = Field {
        name: "name",
        label,
        kind: "text",
        autocomplete: "off",
        max_length: u32::try_from(*NAME_CHARS.end()).unwrap_or(u32::MAX),
        hint,
        value: form.map(|form| form.get("name").to_owned()).unwrap_or_default(),
        error: None,
    };
    field.with_errors(errors)
}
