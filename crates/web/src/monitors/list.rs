//! `/teams/{team}/monitors`: the monitors of a team, in both environments.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Caller;
use grabd_domain::limits::PAGE_SIZE;
use grabd_domain::monitor::{MAX_BATCH, Monitor};
use grabd_domain::permissions::Permission;
use grabd_engine::monitors::{self, ListRequest};
use http::StatusCode;

use super::CREATED;
use super::view::MonitorView;
use crate::environments::ENVIRONMENTS;
use crate::extract::{QueryForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

#[derive(Template)]
#[template(path = "monitors.html")]
struct MonitorsPage {
    layout: Layout,
    team: String,
    is_deleted: bool,
    /// Says how many monitors have just been created. Empty if none were.
    created: String,
    monitors: Vec<MonitorView>,
    /// The form for a new monitor, if the reader may create one.
    create: Option<String>,
}

/// Shows the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let now = web.core.now();
    let mut views = Vec::new();
    for environment in ENVIRONMENTS {
        let caller = at.team_member.admit(&web.core, environment).await?;
        let listed = list(&web, caller).await?;
        views.extend(listed.iter().map(|monitor| MonitorView::of(monitor, &at, now)));
    }
    let template = MonitorsPage {
        layout: web.monitor_layout(&at),
        team: at.team_member.team_name.clone(),
        is_deleted: query.has("deleted"),
        created: created(query.get(CREATED)),
        monitors: views,
        create: at.may(Permission::Capture).then(|| at.path("monitors/new")),
    };
    Ok(page(StatusCode::OK, &template))
}

/// The notice about so many new monitors. Empty if there cannot be so many.
fn created(count: &str) -> String {
    match count.parse::<usize>() {
        Ok(1) => "1 monitor created.".to_owned(),
        Ok(count @ 2..=MAX_BATCH) => format!("{count} monitors created."),
        Ok(_) | Err(_) => String::new(),
    }
}

/// The monitors of an environment, newest first. The operator limits their number.
async fn list(web: &Web, caller: Caller) -> Result<Vec<Monitor>, Problem> {
    let mut all: Vec<Monitor> = Vec::new();
    loop {
        let starting_after = all.last().map(|last| last.id.to_string());
        let request = ListRequest { limit: Some(*PAGE_SIZE.end()), starting_after, ..ListRequest::default() };
        let page = monitors::list(&web.core, caller, &request).await?;
        all.extend(page.monitors);
        if !page.has_more {
            return Ok(all);
        }
    }
}
