//! `/teams/{team}/keys`: the API keys of a team.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, MAX_KEY_DAYS, Scope, Scopes};
use grabd_engine::accounts::{self, Session, TeamKey, UserTeam};
use grabd_engine::random;
use http::StatusCode;

use super::{DAYS, SCOPES, path};
use crate::environments::environment_name;
use crate::extract::{MyTeamPage, QueryForm};
use crate::fields::name_field;
use crate::form::{Field, FieldError, Form};
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage<'a> {
    layout: Layout,
    form_token: &'a str,
    once: String,
    team_name: &'a str,
    path: String,
    notice: Notice,
    open: Vec<Key>,
    revoked: Vec<Key>,
    name: Field,
    wants_live: bool,
    scopes: Vec<ScopeChoice>,
    days: Field,
    max_days: u16,
    errors: &'a [FieldError],
}

/// What happened before, which the page says on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// Nothing.
    None,
    /// A key was revoked.
    Revoked,
    /// The form was sent a second time.
    AlreadyCreated,
}

/// A permission in the form.
struct ScopeChoice {
    word: &'static str,
    label: &'static str,
    about: &'static str,
    is_chosen: bool,
}

/// Labels and explanations of scopes.
const fn describe(scope: Scope) -> (&'static str, &'static str) {
    match scope {
        Scope::Read => ("Read", "See captures, their images, monitors, sites and the usage."),
        Scope::Create => ("Create", "Capture pages and sites, and create, change and delete monitors."),
        Scope::Manage => ("Manage", "Manage webhooks, which receive captures, and proxies, and delete images."),
    }
}

/// A key in the list.
struct Key {
    id: String,
    name: String,
    environment: &'static str,
    is_live: bool,
    /// `sk_live_…3-_9`
    shown: String,
    created: Moment,
    used: Option<Moment>,
    revoked: Option<Moment>,
    /// The scopes of a restricted key; empty for all.
    scopes: String,
    expires: Option<Moment>,
    is_expired: bool,
    created_by: String,
    grabs: String,
    /// `None` for test keys, which spend none.
    credits: Option<String>,
}

impl Key {
    fn new(key: TeamKey, now: Timestamp) -> Self {
        let TeamKey {
            id,
            environment,
            name,
            last4,
            created_at,
            last_used_at,
            revoked_at,
            scopes,
            expires_at,
            created_by,
            usage,
        } = key;
        Self {
            id: id.to_string(),
            name,
            environment: environment_name(environment),
            is_live: environment == Environment::Live,
            shown: format!("{}…{last4}", environment.key_prefix()),
            created: created_at.into(),
            used: last_used_at.map(Moment::from),
            revoked: revoked_at.map(Moment::from),
            scopes: if scopes == Scopes::ALL { String::new() } else { scopes.to_string() },
            expires: expires_at.map(Moment::from),
            is_expired: expires_at.is_some_and(|at| at <= now),
            created_by: created_by.map(|email| email.to_string()).unwrap_or_default(),
            grabs: grouped(usage.grabs),
            credits: (environment == Environment::Live).then(|| grouped(usage.credits)),
        }
    }
}

/// Shows the list, with the form for a new key.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let notice = if query.has("revoked") { Notice::Revoked } else { Notice::None };
    list(&web, &user.session, team, StatusCode::OK, notice, None, &[]).await
}

pub(super) async fn list(
    web: &Web,
    session: &Session,
    team: UserTeam,
    status: StatusCode,
    notice: Notice,
    input: Option<&Form>,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let keys = accounts::list_keys(&web.core, session.user.id, team.team).await?;
    let now = web.core.now();
    let keys = keys.into_iter().map(|key| Key::new(key, now));
    let (open, revoked): (Vec<_>, Vec<_>) = keys.partition(|key| key.revoked.is_none());
    let choose = |scope: Scope| {
        let (word, (label, about)) = (scope.as_str(), describe(scope));
        let is_given = |form: &Form| form.fields().iter().any(|(name, value)| name == SCOPES && value == word);
        ScopeChoice { word, label, about, is_chosen: input.is_none_or(is_given) }
    };
    let days = Field {
        name: DAYS,
        label: "Expires after",
        kind: "number",
        autocomplete: "off",
        max_length: 0,
        hint: "Days. Leave empty to keep the key until you revoke it.",
        value: input.map(|form| form.get(DAYS).to_owned()).unwrap_or_default(),
        error: None,
    };
    let template = KeysPage {
        layout: web.team_admin_layout(session, team.team, "keys").await?,
        form_token: &session.csrf,
        // A form that was refused has made no key, and another id does no harm.
        once: random::secret_text(),
        team_name: &team.name,
        path: path(team.team),
        notice,
        open,
        revoked,
        name: name_field("Name", "Where it is used, such as “build server”.", input, errors),
        wants_live: input.is_some_and(|form| form.get("environment") == Environment::Live.as_str()),
        scopes: Scope::ALL.map(choose).into(),
        days: days.with_errors(errors),
        max_days: MAX_KEY_DAYS,
        errors,
    };
    Ok(page(status, &template))
}
