//! `/teams/{team}/monitors/{monitor}`: the state of a monitor, and its runs.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::ids::GrabId;
use grabd_domain::monitor::Run;
use grabd_domain::permissions::Permission;
use grabd_engine::monitors::{self, ListRequest};
use grabd_engine::{Error, grabs, monitor_json};
use http::StatusCode;

use super::PAGE;
use super::chart::{Chart, MAX_RUNS};
use super::view::{MonitorView, RunView};
use crate::extract::{QueryForm, TeamPage};
use crate::form::Form;
use crate::grabs::view::View;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// The query parameter of the pagination.
const AFTER: &str = "starting_after";

#[derive(Template)]
#[template(path = "monitor.html")]
struct MonitorPage<'a> {
    layout: Layout,
    form_token: &'a str,
    notice: &'static str,
    list: String,
    monitor: MonitorView,
    /// Whether the reader may change the monitor.
    can_change: bool,
    /// The id of the newest capture, if it shows a change, still has its image, and is not the baseline.
    acceptable: Option<String>,
    chart: Option<Chart>,
    runs: Vec<RunView>,
    newest: Option<String>,
    older: Option<String>,
    /// The monitor as the API returns it.
    json: String,
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, monitor)): Path<(String, String)>,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let (monitor, caller) = at.find_monitor_counted(&web, &monitor).await?;
    let after = Some(query.get(AFTER)).filter(|after| !after.is_empty()).map(str::to_owned);
    let is_later_page = after.is_some();
    let limit = i64::try_from(MAX_RUNS).unwrap_or(i64::MAX);
    let request = ListRequest { limit: Some(limit), starting_after: after, ..ListRequest::default() };
    let listed = monitors::list_runs(&web.core, caller, monitor.id, &request).await;
    let listed = match listed.map_err(Error::into_fault) {
        Ok(listed) => listed,
        Err(Fault::BadRequest(_)) => {
            return Err(Problem::bad_request(
                "Invalid page link",
                "The link refers to a run that is no longer in this list.",
                "Go back to the first page.",
            ));
        }
        Err(fault) => return Err(fault.into()),
    };
    let view = MonitorView::of(&monitor, &at, web.core.now());
    let threshold = monitor.spec.compare.image.as_ref().map(|image| image.threshold_ppm);
    let with_image = grabs_with_image(&web, &at, caller, &listed.runs).await?;
    let runs: Vec<RunView> = listed.runs.iter().map(|run| RunView::of(run, &monitor, &at, &with_image)).collect();
    let last = listed.runs.last().filter(|_| listed.has_more);
    let template = MonitorPage {
        layout: web.monitor_layout(&at),
        form_token: at.form_token(),
        notice: notice(&query, &view),
        list: at.path(PAGE),
        can_change: at.may(Permission::Capture),
        acceptable: newest_change(&runs).filter(|_| !is_later_page),
        chart: Chart::of(&listed.runs, threshold),
        newest: is_later_page.then(|| view.path.clone()),
        older: last.map(|last| format!("{}?{AFTER}={}", view.path, last.id)),
        json: monitor_json(&monitor),
        monitor: view,
        runs,
    };
    Ok(page(StatusCode::OK, &template))
}

/// The grabs of the runs, and those that they were compared with, whose images still exist.
async fn grabs_with_image(web: &Web, at: &TeamContext, caller: Caller, runs: &[Run]) -> Result<Vec<GrabId>, Problem> {
    let mut ids: Vec<GrabId> = runs.iter().flat_map(|run| run.grab.into_iter().chain(run.compared_to)).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = grabs::get_several(&web.core, caller, &ids).await?;
    Ok(found.iter().filter(|grab| View::of(grab, at).has_image()).map(|grab| grab.id).collect())
}

/// The capture of the newest run that has ended, if it can be accepted.
fn newest_change(runs: &[RunView]) -> Option<String> {
    runs.iter().find(|run| !run.is_open).and_then(|run| run.acceptable.clone())
}

/// The notice for the query parameter, if it is still true.
fn notice(query: &Form, monitor: &MonitorView) -> &'static str {
    if query.has("created") {
        "Monitor created. Its first capture is the one that later ones are compared with."
    } else if query.has("changed") {
        "Changes saved. They apply from the next run on."
    } else if query.has("paused") && monitor.is_paused {
        "Monitor paused."
    } else if query.has("resumed") && !monitor.is_paused {
        "Monitor resumed."
    } else if query.has("feed_off") && !monitor.has_feed {
        "The addresses of the feed and the badge do not work any more."
    } else if query.has("accepted") {
        "Capture accepted. Later captures are compared with it."
    } else {
        ""
    }
}
