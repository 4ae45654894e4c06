//! `/teams/{team}/billing/paid`: back from Stripe. Anybody in the team can open this address, so it thanks, and tells which
//! purchases the ledger has since the person went to pay; it never takes the visit for a payment.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::Timestamp;
use grabd_engine::billing;
use http::StatusCode;

use super::{HERE, frame};
use crate::Web;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::number::grouped;
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first_at;

/// The field of the query that tells when the person went to pay, in milliseconds.
const SINCE: &str = "since";

#[derive(Template)]
#[template(path = "paid.html")]
struct PaidPage<'a> {
    frame: Frame,
    team_name: &'a str,
    /// What was bought since, if anything was.
    bought: Option<String>,
    total: String,
    again: String,
    path: String,
}

/// The page below the team's own to which somebody comes back who goes to pay now.
pub(super) fn back(now: Timestamp) -> String {
    format!("paid?{SINCE}={}", now.as_ms())
}

/// The page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.at_team(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_first_at(request.uri())));
    };
    let (core, team) = (&web.core, at.insider.team);
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let since = query.one(SINCE).parse().map_or(core.now(), Timestamp::from_ms);
    let purchases = billing::purchases_since(core, team, since).await?;
    let bought: u64 = purchases.iter().map(|purchase| u64::from(purchase.lot.granted)).sum();
    let template = PaidPage {
        frame: frame(&web, &at),
        team_name: &at.insider.team_name,
        bought: (bought > 0).then(|| grouped(bought)),
        total: grouped(billing::balance(core, team).await?.total()),
        again: at.path(&format!("{HERE}/{}", back(since))),
        path: at.path(HERE),
    };
    Ok(page(StatusCode::OK, &template))
}
