//! `/operator/teams/{team}`: one team, and the form that grants it credits.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credits::LotKind;
use grabd_engine::chance;
use grabd_engine::operator::{self, CREDITS, Key, OneTeam, REASON_CHARS};
use http::StatusCode;

use super::view::{Failure, share};
use super::{AtOperator, Link, navigation, unknown};
use crate::Web;
use crate::apps::list::environment_name;
use crate::form::{Complaint, Field, Form};
use crate::moment::Moment;
use crate::number::grouped;
use crate::page::{Frame, page};
use crate::problem::Problem;

/// The field with the number of credits.
pub(super) const CREDITS_FIELD: &str = "credits";
/// The field with what they are for.
pub(super) const REASON_FIELD: &str = "reason";
/// The field that makes one grant of a form that is sent twice.
pub(super) const ONCE: &str = "once";

#[derive(Template)]
#[template(path = "operator_team.html")]
struct TeamPage<'a> {
    frame: Frame,
    links: Vec<Link>,
    form_token: &'a str,
    once: String,
    credits: Field,
    reason: Field,
    errors: &'a [Complaint],
    is_granted: bool,
    path: String,
    id: String,
    name: String,
    is_active: bool,
    created: Moment,
    live: String,
    subscription: String,
    prepaid: String,
    held: String,
    done: String,
    failed: String,
    failed_share: String,
    members: Vec<(String, &'static str)>,
    lots: Vec<Lot>,
    keys: Vec<ShownKey>,
    failures: Vec<Failure>,
}

/// A lot as a table shows it.
struct Lot {
    kind: &'static str,
    granted: String,
    remaining: String,
    held: String,
    came: Moment,
    ends: Option<Moment>,
    source: String,
}

/// A key as a table shows it.
struct ShownKey {
    name: String,
    /// `sk_live_…3-_9`
    shown: String,
    environment: &'static str,
    used: Option<Moment>,
    revoked: Option<Moment>,
}

impl From<Key> for ShownKey {
    fn from(key: Key) -> Self {
        Self {
            name: key.name,
            shown: format!("{}…{}", key.environment.key_prefix(), key.last4),
            environment: environment_name(key.environment),
            used: key.last_used_at.map(Moment::from),
            revoked: key.revoked_at.map(Moment::from),
        }
    }
}

/// The page.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    at: AtOperator,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    answer(&web, &at, &team, StatusCode::OK, &Form::default(), query.has("granted"), &[]).await
}

/// The page with a form as it was sent, and what is wrong with it.
pub(super) async fn answer(
    web: &Web,
    at: &AtOperator,
    team: &str,
    status: StatusCode,
    sent: &Form,
    is_granted: bool,
    errors: &[Complaint],
) -> Result<Response, Problem> {
    let id = team.parse().map_err(|_| unknown())?;
    let found = operator::find_team(&web.core, &at.operator, id).await?.ok_or_else(unknown)?;
    let OneTeam { team, members, balance, lots, keys, done, failed, failures } = found;
    let lots = lots.into_iter().map(|holding| Lot {
        kind: match holding.lot.kind {
            LotKind::Subscription => "Subscription",
            LotKind::Prepaid => "Prepaid",
        },
        granted: grouped(holding.lot.granted.into()),
        remaining: grouped(holding.lot.remaining.into()),
        held: grouped(holding.lot.held.into()),
        came: holding.granted_at.into(),
        ends: holding.lot.expires_at.map(Moment::from),
        source: holding.source_ref,
    });
    let template = TeamPage {
        frame: at.frame(web),
        links: navigation("/operator/teams"),
        form_token: &at.session.csrf,
        // A form that is shown again is a new one: what the one before stands for may have been granted.
        once: chance::secret_text(),
        credits: credits_field(sent, errors),
        reason: reason_field(sent, errors),
        errors,
        is_granted,
        path: format!("/operator/teams/{}", team.id),
        id: team.id.to_string(),
        name: team.name,
        is_active: team.status == "active",
        created: team.created_at.into(),
        live: grouped(balance.total()),
        subscription: grouped(balance.subscription),
        prepaid: grouped(balance.prepaid),
        held: grouped(balance.held),
        done: grouped(done),
        failed: grouped(failed),
        failed_share: share(failed, done + failed),
        members: members.into_iter().map(|member| (member.email.to_string(), member.role.as_str())).collect(),
        lots: lots.collect(),
        keys: keys.into_iter().map(ShownKey::from).collect(),
        failures: failures.into_iter().map(Failure::from).collect(),
    };
    Ok(page(status, &template))
}

fn credits_field(sent: &Form, errors: &[Complaint]) -> Field {
    Field {
        name: CREDITS_FIELD,
        label: "Credits",
        kind: "text",
        autocomplete: "off",
        longest: 7,
        hint: "Prepaid: they do not lapse.",
        value: sent.one(CREDITS_FIELD).to_owned(),
        error: None,
    }
    .with_errors(errors)
}

fn reason_field(sent: &Form, errors: &[Complaint]) -> Field {
    Field {
        name: REASON_FIELD,
        label: "Reason",
        kind: "text",
        autocomplete: "off",
        longest: 200,
        hint: "The team reads it in its ledger.",
        value: sent.one(REASON_FIELD).to_owned(),
        error: None,
    }
    .with_errors(errors)
}

/// What is wrong with a form, beside its fields.
pub(super) fn complaint(mistake: operator::Mistake) -> Complaint {
    let (field, message) = match mistake {
        operator::Mistake::Credits => {
            let most = grouped((*CREDITS.end()).into());
            (CREDITS_FIELD, format!("Write a whole number from {} to {most}.", CREDITS.start()))
        }
        operator::Mistake::Reason => {
            let (least, most) = (REASON_CHARS.start(), REASON_CHARS.end());
            (REASON_FIELD, format!("Write a reason of {least} to {most} characters."))
        }
        operator::Mistake::Once => {
            ("", "This form did not arrive whole. Nothing was granted; send it again.".to_owned())
        }
    };
    Complaint { field, message }
}
