//! `/teams/{team}/grabs/{grab}/delete`: deletes the image after a confirmation.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::grabs;
use http::StatusCode;

use super::view::View;
use crate::extract::{TeamForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

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
    TeamPage(at): TeamPage,
    Path((_, grab)): Path<(String, String)>,
) -> Result<Response, Problem> {
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
    Path((_, grab)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (grab, caller) = at.find_grab_counted(&web, &grab).await?;
    grabs::delete(&web.core, caller, grab.id).await?;
    Ok(see_other(&format!("{}?deleted", at.grab_path(grab.id, ""))))
}
