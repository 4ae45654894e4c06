//! `/teams/{team}/grabs/{grab}/delete`: asks first, then deletes the picture for good.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::grabs;
use http::StatusCode;

use super::view::View;
use crate::Web;
use crate::forgery;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first_at;

#[derive(Template)]
#[template(path = "grab_delete.html")]
struct DeletePage<'a> {
    frame: Frame,
    form_token: &'a str,
    view: View,
    is_live: bool,
}

/// The question. Where there is no picture, there is nothing to ask.
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
    let is_live = grab.environment == Environment::Live;
    let view = View::of(&grab, &at);
    if !view.is_picture() {
        return Ok(see_other(&view.path));
    }
    let template = DeletePage { frame: web.team_frame(&at, ""), form_token: at.form_token(), view, is_live };
    Ok(page(StatusCode::OK, &template))
}

/// Deletes it.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, grab)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    let Some(at) = web.at_team(&head.headers, &team).await? else { return Err(Problem::signed_out()) };
    forgery::check(&head.headers, &sent, at.form_token())?;
    let (grab, caller) = at.enter_grab(&web, &grab).await?;
    grabs::delete(&web.core, caller, grab.id).await?;
    Ok(see_other(&format!("{}?deleted", at.grab_path(grab.id, ""))))
}
