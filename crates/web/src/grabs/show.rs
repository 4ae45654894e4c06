//! `/teams/{team}/grabs/{grab}`: the picture, what was asked for, what came of it, and how to have it again.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Grab;
use http::StatusCode;

use super::view::{self, Fact, Stands, View};
use super::{options, repeat};
use crate::Web;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::page::{Frame, Rights, page_with};
use crate::problem::Problem;
use crate::session::sign_in_first_at;
use crate::team::AtTeam;

#[derive(Template)]
#[template(path = "grab.html")]
struct GrabPage {
    frame: Frame,
    is_deleted: bool,
    parts: Parts,
    request: Vec<Fact>,
    curl: String,
    key: &'static str,
    again: String,
    list: String,
}

/// What changes on the page while it is open.
#[derive(Template)]
#[template(path = "grab_parts.html")]
pub(super) struct Parts {
    view: View,
    outcome: Vec<Fact>,
}

impl Parts {
    pub(super) fn of(grab: &Grab, at: &AtTeam) -> Self {
        Self { view: View::of(grab, at), outcome: view::outcome(grab) }
    }
}

/// The page. While the grab is open it follows it, with a script or by being loaded again.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, grab)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.at_team(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_first_at(request.uri())));
    };
    let (grab, _) = at.enter_grab(&web, &grab).await?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let is_open = !grab.status().is_terminal();
    let frame = web.team_frame(&at, "");
    let template = GrabPage {
        frame: Frame { script: is_open.then(|| web.assets.script.path.clone()), ..frame },
        is_deleted: query.has("deleted") && grab.deleted_at.is_some(),
        request: view::request(&grab),
        curl: repeat::curl(web.core.public_url(), &grab.spec),
        key: match grab.environment {
            Environment::Live => "a live key",
            Environment::Test => "a test key",
        },
        again: format!("{}?{}", at.path("capture"), options::to_query(&grab.spec, grab.environment)),
        list: format!("{}?environment={}", at.path("grabs"), grab.environment.as_str()),
        parts: Parts::of(&grab, &at),
    };
    Ok(page_with(Rights { script: is_open, ..Rights::default() }, StatusCode::OK, &template))
}
