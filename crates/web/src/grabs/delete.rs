//! `/teams/{team}/grabs/{grab}/delete`: deletes the image after a confirmation.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::grabs;
use http::StatusCode;

use super::view::View;
use crate::Web;
use crate::csrf;
use crate::form::Form;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url_for;

#[derive(Template)]
#[template(path = "grab_delete.html")]
struct DeletePage<'a> {
    layout: Layout,
    form_token: &'a str,
    view: View,
    is_live: bool,
}

/// Asks for confirmation. Redirects if the grab has no image.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path((team, grab)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.team_context(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_url_for(request.uri())));
    };
    let (grab, _) = at.find_grab_counted(&web, &grab).await?;
    let is_live = grab.environment == Environment::Live;
    let view = View::of(&grab, &at);
    if !view.has_image() {
        return Ok(see_other(&view.path));
    }
    let template = DeletePage { layout: web.team_layout(&at, ""), form_token: at.form_token(), view, is_live };
    Ok(page(StatusCode::OK, &template))
}

/// Deletes the image.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path((team, grab)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let input = Form::read(&head.headers, body).await?;
    let Some(at) = web.team_context(&head.headers, &team).await? else { return Err(Problem::signed_out()) };
    csrf::check(&head.headers, &input, at.form_token())?;
    let (grab, caller) = at.find_grab_counted(&web, &grab).await?;
    grabs::delete(&web.core, caller, grab.id).await?;
    Ok(see_other(&format!("{}?deleted", at.grab_path(grab.id, ""))))
}
