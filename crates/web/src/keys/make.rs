//! `/teams/{team}/keys`, as a form: a new key, which the answer shows this once.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use super::{list, path};
use crate::Web;
use crate::apps::list::environment_name;
use crate::form::Complaint;
use crate::frame::Client;
use crate::page::{Frame, Rights, page_with};
use crate::problem::Problem;
use crate::sent::Sent;

#[derive(Template)]
#[template(path = "key_made.html")]
struct MadePage<'a> {
    frame: Frame,
    team: &'a str,
    environment: &'static str,
    is_live: bool,
    name: &'a str,
    key: &'a str,
    base_url: &'a str,
    back: String,
}

/// Makes it.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let Sent { person, form } = web.sent(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    let (user, name) = (person.session.person.id, form.one("name"));
    let environment =
        [Environment::Live, Environment::Test].into_iter().find(|known| known.as_str() == form.one("environment"));
    let Some(environment) = environment else {
        let errors = [Complaint { field: "environment", message: "Choose what the key opens.".to_owned() }];
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return list::list(&web, &person.session, team, status, false, Some(&form), &errors).await;
    };
    let complaint = match accounts::make_key(&web.core, user, team.team, environment, name).await {
        Ok(key) => {
            let frame = web.frame_about_team(&person.session, team.team, "keys").await?;
            let template = MadePage {
                frame: Frame { script: Some(web.assets.copy.path.clone()), ..frame },
                team: &team.name,
                environment: environment_name(environment),
                is_live: environment == Environment::Live,
                name: name.trim(),
                key: key.expose(),
                base_url: &web.core.oauth().base_url,
                back: path(team.team),
            };
            return Ok(page_with(Rights { script: true, ..Rights::default() }, StatusCode::OK, &template));
        }
        Err(TeamError::Name(error)) => format!("Write a name. It {error}."),
        Err(TeamError::Full) => "The team has as many keys as it may have. Revoke one that is not used.".to_owned(),
        Err(error) => return Err(error.into()),
    };
    let errors = [Complaint { field: "name", message: complaint }];
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    list::list(&web, &person.session, team, status, false, Some(&form), &errors).await
}
