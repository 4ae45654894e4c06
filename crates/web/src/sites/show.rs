//! `/teams/{team}/sites/{site}`: the state of a job, and its pages: a contact sheet of the captures, and a list of the others.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::ids::GrabId;
use grabd_domain::limits::PAGE_SIZE;
use grabd_domain::permissions::Permission;
use grabd_domain::site::{PageState, SitePage};
use grabd_engine::sites::{self, ListRequest};
use grabd_engine::{Error, grabs, site_json};
use http::StatusCode;

use super::PAGE;
use super::view::{PageView, SiteView};
use crate::extract::{QueryForm, TeamPage};
use crate::form::Form;
use crate::grabs::card::Card;
use crate::grabs::view::ImageState;
use crate::page::{CspOptions, Layout, page_with};
use crate::problem::Problem;
use crate::state::Web;

/// The query parameter of the pagination.
const AFTER: &str = "starting_after";

#[derive(Template)]
#[template(path = "site.html")]
struct JobPage {
    layout: Layout,
    notice: &'static str,
    list: String,
    /// The path and query of this page.
    here: String,
    site: SiteView,
    /// Whether the reader may cancel and delete the job.
    can_change: bool,
    cards: Vec<Card>,
    /// Captured pages that led to another site, or whose links were not read.
    notes: Vec<PageView>,
    /// The pages without a capture.
    others: Vec<PageView>,
    /// Where selected captures are compared and downloaded.
    compare: String,
    download: String,
    is_later_page: bool,
    first: Option<String>,
    next: Option<String>,
    /// The job as the API returns it.
    json: String,
}

/// Shows the page. While the job is open, its state is updated by script or by reloading.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, site)): Path<(String, String)>,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let (site, caller) = at.find_site_counted(&web, &site).await?;
    let after = Some(query.get(AFTER)).filter(|after| !after.is_empty()).map(str::to_owned);
    let request =
        ListRequest { limit: Some(*PAGE_SIZE.end()), starting_after: after.clone(), ..ListRequest::default() };
    let listed = match sites::list_pages(&web.core, caller, site.id, &request).await.map_err(Error::into_fault) {
        Ok(listed) => listed,
        Err(Fault::BadRequest(_)) => {
            return Err(Problem::bad_request(
                "Invalid page link",
                "The link refers to a page that is not in this list.",
                "Go back to the first page.",
            ));
        }
        Err(fault) => return Err(fault.into()),
    };
    let ids: Vec<GrabId> = listed.pages.iter().filter_map(|page| page.grab).collect();
    let found = grabs::get_several(&web.core, caller, &ids).await?;
    let has_capture = |page: &&SitePage| page.grab.is_some_and(|id| found.iter().any(|grab| grab.id == id));
    let view = SiteView::of(&site, &at);
    let is_open = view.is_open;
    let here = after.as_ref().map_or_else(|| view.path.clone(), |after| format!("{}?{AFTER}={after}", view.path));
    let last = listed.pages.last().filter(|_| listed.has_more);
    let template = JobPage {
        layout: Layout { script: is_open.then(|| web.assets.script.path.clone()), ..web.site_layout(&at) },
        notice: notice(&query, view.can_cancel),
        list: at.path(PAGE),
        here,
        can_change: at.may(Permission::Capture),
        cards: found.iter().map(|grab| Card::of(grab, &at)).collect(),
        notes: listed
            .pages
            .iter()
            .filter(|page| has_capture(page) && page.state == PageState::Done && page.error.is_some())
            .map(PageView::of)
            .collect(),
        others: listed.pages.iter().filter(|page| !has_capture(page)).map(PageView::of).collect(),
        compare: at.path("grabs/compare"),
        download: at.path("grabs/download"),
        is_later_page: after.is_some(),
        first: after.is_some().then(|| view.path.clone()),
        next: last.map(|last| format!("{}?{AFTER}={}", view.path, last.number)),
        json: site_json(&site),
        site: view,
    };
    let csp = CspOptions { connects: is_open, ..CspOptions::default() };
    Ok(page_with(csp, StatusCode::OK, &template))
}

/// The notice for the query parameter, if it is still true.
fn notice(query: &Form, can_cancel: bool) -> &'static str {
    if query.has("created") {
        "Job started. Its pages are found and captured."
    } else if query.has("canceled") && !can_cancel {
        "Job canceled. Captures that have begun are finished."
    } else {
        ""
    }
}
