//! `POST /teams/{team}/keys`: creates a key. The response is the only page that shows it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::{Environment, KeyDaysError, Scope, Scopes, parse_key_days};
use grabd_engine::accounts::{self, KeyLimits, Session, TeamError, UserTeam};
use http::StatusCode;

use super::examples::{self, Examples};
use super::list::{self, Notice};
use super::{DAYS, ONCE, SCOPES, path};
use crate::environments::environment_name;
use crate::extract::MyTeamForm;
use crate::form::{FieldError, Form};
use crate::grabs::snippets::Snippet;
use crate::page::{Layout, page};
use crate::paths;
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

#[derive(Template)]
#[template(path = "key_created.html")]
struct KeyCreatedPage<'a> {
    layout: Layout,
    team: &'a str,
    environment: &'static str,
    is_live: bool,
    name: &'a str,
    key: &'a str,
    /// Empty unless the key is restricted.
    scopes: String,
    expires: Option<Moment>,
    base_url: &'a str,
    /// What the programs do.
    about: &'static str,
    programs: Vec<Snippet>,
    connect: &'static str,
    back: String,
}

/// What the form asks for.
struct Wanted {
    environment: Environment,
    limits: KeyLimits,
}

/// Creates the key. A form that is sent again, such as by a reload of the answer, makes no second one.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    MyTeamForm { user, team, form, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let (me, once) = (user.session.user.id, form.get(ONCE));
    if !web.used_forms.start(me, once, web.core.now()) {
        let status = StatusCode::CONFLICT;
        return list::list(&web, &user.session, team, status, Notice::AlreadyCreated, None, &[]).await;
    }
    let created = create(&web, &user.session, &team, &form).await;
    if !matches!(created, Ok(Ok(_))) {
        web.used_forms.release(me, once);
    }
    match created? {
        Ok(response) => Ok(response),
        Err(error) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            list::list(&web, &user.session, team, status, Notice::None, Some(&form), &[error]).await
        }
    }
}

/// Creates the key of a form. The inner error is shown at its field.
async fn create(
    web: &Web,
    session: &Session,
    team: &UserTeam,
    form: &Form,
) -> Result<Result<Response, FieldError>, Problem> {
    let Wanted { environment, limits } = match read(form) {
        Ok(wanted) => wanted,
        Err(error) => return Ok(Err(error)),
    };
    let name = form.get("name");
    // Before the key exists: a failure afterwards would hide it.
    let layout = web.team_admin_layout(session, team.team, "keys").await?;
    let message = match accounts::create_key(&web.core, session.user.id, team.team, environment, name, limits).await {
        Ok(key) => {
            let is_live = environment == Environment::Live;
            let Examples { about, programs } =
                examples::for_key(web.core.public_url(), key.expose(), limits.scopes, is_live)?;
            let template = KeyCreatedPage {
                layout: Layout { script: Some(web.assets.key.path.clone()), ..layout },
                team: &team.name,
                environment: environment_name(environment),
                is_live,
                name: name.trim(),
                key: key.expose(),
                scopes: if limits.scopes == Scopes::ALL { String::new() } else { limits.scopes.to_string() },
                expires: limits.life.map(|life| Moment::from(web.core.now() + life)),
                base_url: &web.core.oauth().base_url,
                about,
                programs,
                connect: paths::CONNECT,
                back: path(team.team),
            };
            return Ok(Ok(page(StatusCode::OK, &template)));
        }
        Err(TeamError::Name(error)) => format!("Enter a name. It {error}."),
        Err(TeamError::Full) => "The team has reached its limit of keys. Revoke one that is not used.".to_owned(),
        Err(error) => return Err(error.into()),
    };
    Ok(Err(FieldError { field: "name", message }))
}

/// The environment and restrictions that the form asks for.
fn read(form: &Form) -> Result<Wanted, FieldError> {
    let environment =
        [Environment::Live, Environment::Test].into_iter().find(|known| known.as_str() == form.get("environment"));
    let unknown = || FieldError { field: "environment", message: "Choose an environment.".to_owned() };
    Ok(Wanted { environment: environment.ok_or_else(unknown)?, limits: read_limits(form)? })
}

/// The restrictions that the form asks for.
fn read_limits(form: &Form) -> Result<KeyLimits, FieldError> {
    let chosen = form.fields().iter().filter(|(name, _)| name == SCOPES);
    let known: Option<Vec<Scope>> = chosen.map(|(_, scope)| Scope::parse(scope)).collect();
    let Some(scopes) = known.and_then(Scopes::new) else {
        return Err(FieldError { field: SCOPES, message: "Choose at least one permission.".to_owned() });
    };
    match parse_key_days(form.get(DAYS)) {
        Ok(life) => Ok(KeyLimits { scopes, life }),
        Err(error @ KeyDaysError) => {
            Err(FieldError { field: DAYS, message: format!("Enter when the key expires. It {error}, or empty.") })
        }
    }
}
