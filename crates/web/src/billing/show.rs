//! `/teams/{team}/billing`: balance, packages, usage of the last days, and the newest ledger entries.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credits::{ALERT_RECIPIENTS, LotKind};
use grabd_domain::permissions::Permission;
use grabd_domain::{Day, Timestamp};
use grabd_engine::billing::{self, AlertCandidate, Holding, MAX_HOLDINGS};
use http::StatusCode;

use super::chart::Chart;
use super::entries::Row;
use super::forecast::Forecast;
use super::{HERE, alert_field, checkout};
use crate::extract::{QueryForm, TeamPage};
use crate::form::{Field, FieldError};
use crate::number::grouped;
use crate::offers::{Offer, Offers};
use crate::page::{CspOptions, Layout, page_with};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;
use crate::time_format::{Date, Moment};

/// The field with the id of a member who gets alerts, once for each.
pub(super) const RECIPIENT_FIELD: &str = "recipient";
/// Number of ledger entries on this page.
const NEWEST: u32 = 8;

#[derive(Template)]
#[template(path = "billing.html")]
struct BillingPage<'a> {
    layout: Layout,
    form_token: &'a str,
    team_name: &'a str,
    team_id: String,
    path: String,
    notice: &'static str,
    errors: &'a [FieldError],
    alert_below: Field,
    /// Whether the reader may change the alert.
    may_change_alert: bool,
    sends_mail: bool,
    /// The members who can be chosen to get alerts, if the reader may choose.
    candidates: Vec<Candidate>,
    max_recipients: usize,
    recipient_error: Option<String>,
    total: String,
    held: String,
    /// How long the credits last.
    forecast: Option<Forecast>,
    lots: Vec<Lot>,
    /// Whether there may be more lots than shown.
    is_cut: bool,
    /// Whether the reader may buy credits. `can_buy`: also, they are sold on this page.
    may_buy: bool,
    can_buy: bool,
    /// Whether the user has to verify their e-mail address before they can buy.
    is_unverified: bool,
    /// Where credits are sold if not on this page.
    external: Option<ExternalTopUp>,
    offers: Offers,
    /// The annual plan. The operator starts it, because it is not a payment of one time.
    yearly: Offer,
    chart: Option<Chart>,
    entries: Vec<Row>,
    has_more: bool,
    /// The form for a new capture. `None`: the reader may not capture.
    capture: Option<String>,
}

/// A member who can be chosen to get alerts.
struct Candidate {
    id: String,
    email: String,
    is_chosen: bool,
}

/// A lot in the table.
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

impl From<AlertCandidate> for Candidate {
    fn from(AlertCandidate { user, email, is_chosen }: AlertCandidate) -> Self {
        Self { id: user.to_string(), email: email.to_string(), is_chosen }
    }
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

/// The top-up address that the operator configured, possibly a link.
struct ExternalTopUp {
    address: String,
    is_link: bool,
}

/// What the page shows beside what is stored.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) notice: &'static str,
    /// The entered number of credits for alerts, if it was rejected.
    pub(super) below: Option<String>,
    pub(super) errors: Vec<FieldError>,
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let notice = match (query.has("cancelled"), query.has("saved")) {
        (true, _) => "Payment cancelled. Nothing was charged.",
        (false, true) => "Alert saved.",
        (false, false) => "",
    };
    render(&web, &at, StatusCode::OK, Shown { notice, ..Shown::default() }).await
}

pub(super) async fn render(web: &Web, at: &TeamContext, status: StatusCode, shown: Shown) -> Result<Response, Problem> {
    let Shown { notice, below, errors } = shown;
    let (core, team, now) = (&web.core, at.team_member.team, web.core.now());
    let balance = billing::balance(core, team).await?;
    let holdings = billing::holdings(core, team).await?;
    let days = billing::grabs_by_day(core, team).await?;
    let newest = billing::ledger(core, team, None, NEWEST).await?;
    let may_buy = at.may(Permission::BuyCredits);
    let can_buy = may_buy && billing::can_buy(core);
    let alert = billing::balance_alert(core, team).await?;
    let may_change_alert = at.may(Permission::ManageAlerts);
    // Without mail, nobody can get one.
    let candidates = match may_change_alert && core.sends_mail() {
        true => billing::list_alert_candidates(core, team).await?,
        false => Vec::new(),
    };
    let below = below.unwrap_or_else(|| grouped(alert.below.into()));
    let template = BillingPage {
        layout: web.team_layout(at, HERE),
        form_token: at.form_token(),
        team_name: &at.team_member.team_name,
        team_id: team.to_string(),
        path: at.path(HERE),
        notice,
        errors: &errors,
        alert_below: alert_field::field(below, &errors),
        may_change_alert,
        candidates: candidates.into_iter().map(Candidate::from).collect(),
        max_recipients: ALERT_RECIPIENTS,
        recipient_error: errors.iter().find(|error| error.field == RECIPIENT_FIELD).map(|error| error.message.clone()),
        sends_mail: core.sends_mail(),
        total: grouped(balance.total()),
        held: grouped(balance.held),
        forecast: Forecast::of(balance.total(), &days),
        is_cut: holdings.len() >= MAX_HOLDINGS as usize,
        lots: holdings.into_iter().map(|holding| Lot::of(holding, now)).collect(),
        may_buy,
        can_buy,
        is_unverified: !at.signed_in.session.user.verified,
        external: external_top_up(web, core.top_up(team), &at.path(HERE)),
        offers: Offers::of_packages(&core.pricing().pricing),
        yearly: Offers::yearly(&core.pricing().pricing),
        chart: Chart::of(&days),
        entries: newest.entries.into_iter().map(|entry| Row::of(entry, at)).collect(),
        has_more: newest.before.is_some(),
        capture: at.may(Permission::Capture).then(|| at.path("capture")),
    };
    let form_target = if can_buy { checkout::STRIPE } else { "" };
    Ok(page_with(CspOptions { form_target, ..CspOptions::default() }, status, &template))
}

fn external_top_up(web: &Web, address: String, own_path: &str) -> Option<ExternalTopUp> {
    let is_own = address.strip_prefix(web.core.public_url()) == Some(own_path);
    let is_link = ["https://", "http://", "mailto:"].iter().any(|scheme| address.starts_with(scheme));
    (!is_own).then_some(ExternalTopUp { address, is_link })
}
