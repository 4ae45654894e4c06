//! `/teams/{team}/monitors/{monitor}/feed` and `…/feed/off`: gives the feed and the badge of a monitor public addresses, and removes
//! them. The response to the first is the only page that shows them.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::monitors::{self, FeedAddresses};
use http::StatusCode;

use crate::extract::TeamForm;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

#[derive(Template)]
#[template(path = "monitor_feed.html")]
struct FeedPage<'a> {
    layout: Layout,
    name: &'a str,
    addresses: FeedAddresses,
    back: String,
}

/// Creates the addresses, which replace the former ones, and shows them.
pub(crate) async fn open(
    State(web): State<Arc<Web>>,
    Path((_, monitor)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (monitor, caller) = at.find_monitor_counted(&web, &monitor).await?;
    let addresses = monitors::open_feed(&web.core, caller, monitor.id).await?;
    let template = FeedPage {
        layout: web.monitor_layout(&at),
        name: &monitor.spec.name,
        addresses,
        back: at.monitor_path(monitor.id, ""),
    };
    Ok(page(StatusCode::OK, &template))
}

/// Removes the addresses.
pub(crate) async fn close(
    State(web): State<Arc<Web>>,
    Path((_, monitor)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (monitor, caller) = at.find_monitor_counted(&web, &monitor).await?;
    monitors::close_feed(&web.core, caller, monitor.id).await?;
    Ok(see_other(&format!("{}?feed_off", at.monitor_path(monitor.id, ""))))
}
