//! `/teams/{team}/proxies`: the proxies of a team, in both environments.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::proxies;
use http::StatusCode;

use super::check_enabled;
use super::view::ProxyView;
use crate::environments::ENVIRONMENTS;
use crate::extract::{QueryForm, TeamPage};
use crate::form::Form;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

#[derive(Template)]
#[template(path = "proxies.html")]
struct ProxiesPage {
    layout: Layout,
    team: String,
    notice: &'static str,
    proxies: Vec<ProxyView>,
    create: String,
    settings: String,
}

/// Shows the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    check_enabled(&web)?;
    let mut shown = Vec::new();
    for environment in ENVIRONMENTS {
        let caller = at.team_member.admit(&web.core, environment).await?;
        let listed = proxies::list(&web.core, caller).await?;
        shown.extend(listed.iter().map(|proxy| ProxyView::of(proxy, &at)));
    }
    let template = ProxiesPage {
        layout: web.proxy_layout(&at),
        team: at.team_member.team_name.clone(),
        notice: notice(&query),
        proxies: shown,
        create: at.path("proxies/new"),
        settings: at.path("settings"),
    };
    Ok(page(StatusCode::OK, &template))
}

fn notice(query: &Form) -> &'static str {
    if query.has("created") {
        "Proxy created. Captures use it by its id."
    } else if query.has("changed") {
        "Changes saved. Captures that are rendered from now on use them."
    } else if query.has("deleted") {
        "Proxy deleted."
    } else {
        ""
    }
}
