//! `/operator/teams/{team}`: one team, and the form that grants it credits.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credits::LotKind;
use grabd_engine::operator::{self, CREDITS, Key, REASON_CHARS, TeamDetails};
use grabd_engine::random;
use http::StatusCode;

use super::context::unknown;
use super::limit_table::Limits;
use super::navigation::{AUDIT, FAILURES, TEAMS};
use super::view::{Failure, share};
use crate::environments::environment_name;
use crate::extract::OperatorContext;
use crate::form::{Field, FieldError, Form};
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

/// The field with the number of credits.
pub(super) const CREDITS_FIELD: &str = "credits";
/// The field with the reason of the grant.
pub(super) const REASON_FIELD: &str = "reason";
/// The field with the idempotency key: a form that is sent twice makes one grant.
pub(super) const IDEMPOTENCY_FIELD: &str = "once";

#[derive(Template)]
#[template(path = "operator_team.html")]
struct TeamPage<'a> {
    layout: Layout,
    form_token: &'a str,
    once: String,
    credits: Field,
    reason: Field,
    errors: &'a [FieldError],
    is_granted: bool,
    path: String,
    id: String,
    name: String,
    suspension: Option<Suspended>,
    trail: String,
    all_failures: String,
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
    keys: Vec<KeyRow>,
    failures: Vec<Failure>,
    limits: Limits,
}

/// The suspension of the team.
struct Suspended {
    since: Moment,
    reason: String,
}

/// A lot in the table.
struct Lot {
    kind: &'static str,
    granted: String,
    remaining: String,
    held: String,
    came: Moment,
    ends: Option<Moment>,
    source: String,
}

/// A key in the table.
struct KeyRow {
    name: String,
    /// `sk_live_…3-_9`
    shown: String,
    environment: &'static str,
    used: Option<Moment>,
    revoked: Option<Moment>,
}

impl From<Key> for KeyRow {
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

/// Shows the page.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    render(&web, &at, &team, StatusCode::OK, &Form::default(), query.has("granted"), &[]).await
}

/// Renders the page with a submitted form and its errors.
pub(super) async fn render(
    web: &Web,
    at: &OperatorContext,
    team: &str,
    status: StatusCode,
    input: &Form,
    is_granted: bool,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let id = team.parse().map_err(|_| unknown())?;
    let found = operator::find_team(&web.core, &at.operator, id).await?.ok_or_else(unknown)?;
    let TeamDetails { team, members, balance, lots, keys, done, failed, failures, limits } = found;
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
        layout: at.layout(web, TEAMS),
        form_token: &at.session.csrf,
        // The form always gets a new idempotency key, because a grant with the previous one may exist.
        once: random::secret_text(),
        credits: credits_field(input, errors),
        reason: reason_field(input, errors),
        errors,
        is_granted,
        path: format!("/operator/teams/{}", team.id),
        id: team.id.to_string(),
        name: team.name,
        suspension: team
            .suspension
            .map(|suspension| Suspended { since: suspension.at.into(), reason: suspension.reason }),
        trail: format!("{AUDIT}?team={}", team.id),
        all_failures: format!("{FAILURES}?team={}", team.id),
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
        keys: keys.into_iter().map(KeyRow::from).collect(),
        failures: failures.into_iter().map(Failure::from).collect(),
        limits: Limits::new(limits, input, errors),
    };
    Ok(page(status, &template))
}

fn credits_field(input: &Form, errors: &[FieldError]) -> Field {
    Field {
        name: CREDITS_FIELD,
        label: "Credits",
        kind: "text",
        autocomplete: "off",
        max_length: 7,
        hint: "Prepaid credits do not expire.",
        value: input.get(CREDITS_FIELD).to_owned(),
        error: None,
    }
    .with_errors(errors)
}

fn reason_field(input: &Form, errors: &[FieldError]) -> Field {
    Field {
        name: REASON_FIELD,
        label: "Reason",
        kind: "text",
        autocomplete: "off",
        max_length: 200,
        hint: "Shown in the team’s ledger.",
        value: input.get(REASON_FIELD).to_owned(),
        error: None,
    }
    .with_errors(errors)
}

/// The form error for a mistake.
pub(super) fn field_error(mistake: operator::GrantFormError) -> FieldError {
    let (field, message) = match mistake {
        operator::GrantFormError::Credits => {
            let max = grouped((*CREDITS.end()).into());
            (CREDITS_FIELD, format!("Enter a whole number from {} to {max}.", CREDITS.start()))
        }
        operator::GrantFormError::Reason => {
            let (min, max) = (REASON_CHARS.start(), REASON_CHARS.end());
            (REASON_FIELD, format!("Enter a reason of {min} to {max} characters."))
        }
        operator::GrantFormError::FormId => {
            ("", "The form was incomplete. Nothing was granted. Submit it again.".to_owned())
        }
    };
    FieldError { field, message }
}
