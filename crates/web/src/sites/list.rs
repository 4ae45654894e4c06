//! `/teams/{team}/sites`: the jobs of a team that capture sites, in both environments.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Caller;
use grabd_domain::limits::PAGE_SIZE;
use grabd_domain::permissions::Permission;
use grabd_domain::site::Site;
use grabd_engine::sites::{self, ListRequest};
use http::StatusCode;

use super::view::SiteView;
use crate::environments::ENVIRONMENTS;
use crate::extract::{QueryForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

#[derive(Template)]
#[template(path = "sites.html")]
struct SitesPage {
    layout: Layout,
    team: String,
    is_deleted: bool,
    sites: Vec<SiteView>,
    /// The form for a new job, if the reader may create one.
    create: Option<String>,
}

/// Shows the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let mut views = Vec::new();
    for environment in ENVIRONMENTS {
        let caller = at.team_member.admit(&web.core, environment).await?;
        let listed = list(&web, caller).await?;
        views.extend(listed.iter().map(|site| SiteView::of(site, &at)));
    }
    let template = SitesPage {
        layout: web.site_layout(&at),
        team: at.team_member.team_name.clone(),
        is_deleted: query.has("deleted"),
        sites: views,
        create: at.may(Permission::Capture).then(|| at.path("sites/new")),
    };
    Ok(page(StatusCode::OK, &template))
}

/// The jobs of an environment, newest first. Their number is limited.
async fn list(web: &Web, caller: Caller) -> Result<Vec<Site>, Problem> {
    let mut all: Vec<Site> = Vec::new();
    loop {
        let starting_after = all.last().map(|last| last.id.to_string());
        let request = ListRequest { limit: Some(*PAGE_SIZE.end()), starting_after, ..ListRequest::default() };
        let page = sites::list(&web.core, caller, &request).await?;
        all.extend(page.sites);
        if !page.has_more {
            return Ok(all);
        }
    }
}
