//! `/operator/people`: all users, newest first, with a search.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::operator::{self, UserCursor, UserSummary, UserSummaryTeam};
use http::StatusCode;

use super::cursor;
use super::navigation::{AUDIT, PEOPLE, TEAMS};
use crate::extract::OperatorContext;
use crate::form::Form;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

/// The query parameter of the search.
const SEARCH: &str = "q";
/// Teams of a user that are listed.
const MAX_TEAMS: usize = 5;

#[derive(Template)]
#[template(path = "operator_people.html")]
struct PeoplePage<'a> {
    layout: Layout,
    search: &'a str,
    people: Vec<Person>,
    newest: Option<String>,
    older: Option<String>,
}

/// A user in the table.
struct Person {
    email: String,
    id: String,
    is_operator: bool,
    is_verified: bool,
    has_second_factor: bool,
    suspension: Option<Suspended>,
    teams: Vec<Team>,
    more_teams: Option<MoreTeams>,
    last_sign_in: Option<Moment>,
    created: Moment,
    /// The changes that the user made.
    trail: String,
}

/// The suspension of an account.
struct Suspended {
    since: Moment,
    reason: String,
}

/// Teams beyond those that are listed.
struct MoreTeams {
    count: usize,
    /// The page that lists all of them.
    path: String,
}

/// A team of a user.
struct Team {
    path: String,
    name: String,
    role: &'static str,
    is_suspended: bool,
}

impl From<UserSummary> for Person {
    fn from(summary: UserSummary) -> Self {
        let UserSummary { user, mut teams, last_sign_in, has_second_factor } = summary;
        let query = |name, value: &str| Form::from_iter([(name, value)]).to_query();
        let (id, email) = (user.id.to_string(), user.email.to_string());
        let count = teams.len().saturating_sub(MAX_TEAMS);
        teams.truncate(MAX_TEAMS);
        Self {
            more_teams: (count > 0).then(|| MoreTeams { count, path: format!("{TEAMS}?{}", query("q", &email)) }),
            trail: format!("{AUDIT}?{}", query("by", &id)),
            is_operator: user.operator,
            is_verified: user.verified_at.is_some(),
            has_second_factor,
            suspension: user.suspension.map(|of| Suspended { since: of.at.into(), reason: of.reason }),
            teams: teams.into_iter().map(Team::from).collect(),
            last_sign_in: last_sign_in.map(Moment::from),
            created: user.created_at.into(),
            email,
            id,
        }
    }
}

impl From<UserSummaryTeam> for Team {
    fn from(UserSummaryTeam { team, name, role, is_suspended }: UserSummaryTeam) -> Self {
        Self { path: format!("{TEAMS}/{team}"), name, role: role.as_str(), is_suspended }
    }
}

/// Shows the list.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let after = cursor::from_query(&query)?.map(|(created_at, user)| UserCursor { created_at, user });
    let search = query.get(SEARCH);
    let operator::PeoplePage { people, next } = operator::list_people(&web.core, &at.operator, search, after).await?;
    let link = |after: Option<UserCursor>| {
        let after = after.map(|UserCursor { created_at, user }| cursor::format(created_at, user));
        cursor::list_path(PEOPLE, (SEARCH, search), after.as_deref())
    };
    let template = PeoplePage {
        layout: at.layout(&web, PEOPLE),
        search,
        people: people.into_iter().map(Person::from).collect(),
        newest: after.map(|_| link(None)),
        older: next.map(|next| link(Some(next))),
    };
    Ok(page(StatusCode::OK, &template))
}
