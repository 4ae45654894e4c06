//! `/teams/{team}/requests/{request}`: one recorded API request.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::requests;
use http::StatusCode;

use super::PAGE;
use super::view::{RequestView, to_json};
use crate::extract::TeamPage;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

#[derive(Template)]
#[template(path = "request.html")]
struct RequestPage {
    layout: Layout,
    list: String,
    request: RequestView,
    json: String,
    json_lines: usize,
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, request)): Path<(String, String)>,
) -> Result<Response, Problem> {
    // Malformed ids are reported as not found.
    let id = request.parse().map_err(|_| no_request())?;
    let found = requests::find(&web.core, &at.team_member, id).await?;
    let request = found.requests.first().ok_or_else(no_request)?;
    let json = to_json(request, &found);
    let template = RequestPage {
        layout: Layout { script: Some(web.assets.copy.path.clone()), ..web.team_layout(&at, PAGE) },
        list: at.path(PAGE),
        request: RequestView::of(request, &found, &at),
        json_lines: json.lines().count(),
        json,
    };
    Ok(page(StatusCode::OK, &template))
}

fn no_request() -> Problem {
    Problem::not_found("This team does not exist, you are not a member of it, or the item no longer exists.")
}
