//! `POST /teams/{team}/keys`: creates a key. The response is the only page that shows it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::{Environment, KeyDaysError, Scope, Scopes, parse_key_days};
use grabd_engine::accounts::{self, KeyLimits, TeamError};
use http::StatusCode;

use super::{DAYS, SCOPES, list, path};
use crate::environments::environment_name;
use crate::extract::MyTeamForm;
use crate::form::{FieldError, Form};
use crate::page::{Layout, page};
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
    back: String,
}

/// Creates the key.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    MyTeamForm { user, team, form, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let name = form.get("name");
    let environment =
        [Environment::Live, Environment::Test].into_iter().find(|known| known.as_str() == form.get("environment"));
    let Some(environment) = environment else {
        let errors = [FieldError { field: "environment", message: "Choose an environment.".to_owned() }];
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return list::list(&web, &user.session, team, status, false, Some(&form), &errors).await;
    };
    let limits = match read_limits(&form) {
        Ok(limits) => limits,
        Err(error) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return list::list(&web, &user.session, team, status, false, Some(&form), &[error]).await;
        }
    };
    let message =
        match accounts::create_key(&web.core, user.session.user.id, team.team, environment, name, limits).await {
            Ok(key) => {
                let layout = web.team_admin_layout(&user.session, team.team, "keys").await?;
                let template = KeyCreatedPage {
                    layout: Layout { script: Some(web.assets.copy.path.clone()), ..layout },
                    team: &team.name,
                    environment: environment_name(environment),
                    is_live: environment == Environment::Live,
                    name: name.trim(),
                    key: key.expose(),
                    scopes: if limits.scopes == Scopes::ALL { String::new() } else { limits.scopes.to_string() },
                    expires: limits.life.map(|life| Moment::from(web.core.now() + life)),
                    base_url: &web.core.oauth().base_url,
                    back: path(team.team),
                };
                return Ok(page(StatusCode::OK, &template));
            }
            Err(TeamError::Name(error)) => format!("Enter a name. It {error}."),
            Err(TeamError::Full) => "The team has reached its limit of keys. Revoke one that is not used.".to_owned(),
            Err(error) => return Err(error.into()),
        };
    let errors = [FieldError { field: "name", message }];
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    list::list(&web, &user.session, team, status, false, Some(&form), &errors).await
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
