//! `/teams/{team}/billing/paid`: the return page after a payment. Any member can open this URL, so it only shows the
//! purchases in the ledger since the checkout started; it never counts as a payment itself.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::Timestamp;
use grabd_engine::billing;
use http::StatusCode;

use super::HERE;
use crate::extract::{QueryForm, TeamPage};
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

/// The query parameter with the time at which the checkout started, in milliseconds.
const SINCE: &str = "since";

#[derive(Template)]
#[template(path = "paid.html")]
struct PaidPage<'a> {
    layout: Layout,
    team_name: &'a str,
    /// The credits bought since then, if any.
    bought: Option<String>,
    total: String,
    again: String,
    path: String,
}

/// The return path, relative to the billing page, of a checkout that starts now.
pub(super) fn return_path(now: Timestamp) -> String {
    format!("paid?{SINCE}={}", now.as_ms())
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let (core, team) = (&web.core, at.team_member.team);
    let since = query.get(SINCE).parse().map_or(core.now(), Timestamp::from_ms);
    let purchases = billing::purchases_since(core, team, since).await?;
    let bought: u64 = purchases.iter().map(|purchase| u64::from(purchase.lot.granted)).sum();
    let template = PaidPage {
        layout: web.team_layout(&at, HERE),
        team_name: &at.team_member.team_name,
        bought: (bought > 0).then(|| grouped(bought)),
        total: grouped(billing::balance(core, team).await?.total()),
        again: at.path(&format!("{HERE}/{}", return_path(since))),
        path: at.path(HERE),
    };
    Ok(page(StatusCode::OK, &template))
}
