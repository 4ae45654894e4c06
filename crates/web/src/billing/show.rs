//! `/teams/{team}/billing`: the balance, what can be bought, the last days, and the newest entries of the ledger.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credits::LotKind;
use grabd_domain::{Day, Timestamp};
use grabd_engine::billing::{self, Holding, MAX_HOLDINGS};
use http::StatusCode;

use super::chart::Chart;
use super::entries::Row;
use super::{HERE, checkout, frame};
use crate::Web;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::moment::{Date, Moment};
use crate::number::{grouped, money};
use crate::page::{Frame, Rights, page_with};
use crate::problem::Problem;
use crate::session::sign_in_first_at;

/// Entries that are shown here; the ledger has the rest.
const NEWEST: u32 = 8;

#[derive(Template)]
#[template(path = "billing.html")]
struct BillingPage<'a> {
    frame: Frame,
    form_token: &'a str,
    team_name: &'a str,
    team_id: String,
    path: String,
    is_cancelled: bool,
    total: String,
    held: String,
    lots: Vec<Lot>,
    /// There may be lots beyond those.
    is_cut: bool,
    can_buy: bool,
    /// Where else credits are sold, when they are not sold here.
    elsewhere: Option<Elsewhere>,
    offers: Vec<Offer>,
    chart: Option<Chart>,
    entries: Vec<Row>,
    has_more: bool,
    capture: String,
}

/// A lot as it is shown.
struct Lot {
    kind: &'static str,
    granted_on: Date,
    source: Option<String>,
    left: String,
    granted: String,
    held: u32,
    expires: Option<Moment>,
    is_over: bool,
}

impl Lot {
    fn of(holding: Holding, now: Timestamp) -> Self {
        let Holding { lot, source_ref, granted_at } = holding;
        Self {
            kind: match (lot.kind, lot.cancelled) {
                (LotKind::Subscription, false) => "Subscription",
                (LotKind::Subscription, true) => "Subscription, cancelled",
                (LotKind::Prepaid, _) => "Prepaid",
            },
            granted_on: Day::of(granted_at).into(),
            source: billing::source(&source_ref).map(str::to_owned),
            left: grouped(lot.free().into()),
            granted: grouped(lot.granted.into()),
            held: lot.held,
            expires: lot.expires_at.map(Moment::from),
            is_over: !lot.is_usable(now),
        }
    }
}

/// An address that the operator has set; a link when it leads somewhere.
struct Elsewhere {
    address: String,
    is_link: bool,
}

/// A package as it is offered.
struct Offer {
    name: String,
    credits: String,
    price: String,
    rest: String,
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
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let (core, team, now) = (&web.core, at.insider.team, web.core.now());
    let balance = billing::balance(core, team).await?;
    let holdings = billing::holdings(core, team).await?;
    let days = billing::captures_by_day(core, team).await?;
    let newest = billing::ledger(core, team, None, NEWEST).await?;
    let can_buy = billing::can_buy(core);
    let template = BillingPage {
        frame: frame(&web, &at),
        form_token: at.form_token(),
        team_name: &at.insider.team_name,
        team_id: team.to_string(),
        path: at.path(HERE),
        is_cancelled: query.has("cancelled"),
        total: grouped(balance.total()),
        held: grouped(balance.held),
        is_cut: holdings.len() >= MAX_HOLDINGS as usize,
        lots: holdings.into_iter().map(|holding| Lot::of(holding, now)).collect(),
        can_buy,
        elsewhere: elsewhere(&web, core.top_up(team), &at.path(HERE)),
        offers: offers(&web),
        chart: Chart::of(&days),
        entries: newest.entries.into_iter().map(|entry| Row::of(entry, &at)).collect(),
        has_more: newest.before.is_some(),
        capture: at.path("capture"),
    };
    let leads_to = if can_buy { checkout::STRIPE } else { "" };
    Ok(page_with(Rights { leads_to, ..Rights::default() }, StatusCode::OK, &template))
}

fn elsewhere(web: &Web, address: String, own_path: &str) -> Option<Elsewhere> {
    let is_own = address.strip_prefix(web.core.public_url()) == Some(own_path);
    let is_link = ["https://", "http://", "mailto:"].iter().any(|scheme| address.starts_with(scheme));
    (!is_own).then_some(Elsewhere { address, is_link })
}

/// What can be bought, with what the price list says about it.
fn offers(web: &Web) -> Vec<Offer> {
    let prices = &web.core.pricing().pricing;
    let offer = |package: &grabd_domain::pricing::Package| Offer {
        name: package.name.clone(),
        credits: grouped(package.credits),
        price: money(package.price_usd, &prices.currency),
        rest: package.reset_policy.clone(),
    };
    prices.prepaid_packages.iter().map(offer).collect()
}
