//! The export of a team's data as JSON lines: one object per line, whose `type` says what it is. Secrets are not
//! included: keys are hashes, and the secrets of webhooks, captures and second factors are encrypted.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use grabd_domain::credentials::{Environment, Scope};
use grabd_domain::credits::LotKind;
use grabd_domain::grabs::{Grab, State};
use grabd_domain::ids::TeamId;
use grabd_domain::webhooks::{Creator, DisabledReason};
use grabd_domain::{Fault, Timestamp};
use grabd_store::credits::Entry;
use grabd_store::grabs::{ExportCursor, ExportPage};
use grabd_store::limits::StoredLimit;
use grabd_store::{Error, Store};
use serde_json::{Value, json};

use crate::api_monitor::api_monitor;
use crate::api_site::api_site;
use crate::billing::find_payer;
use crate::grabs::ArchiveError;
use crate::service::Core;

/// Rows in memory at a time.
const CHUNK: u32 = 500;

/// Where the export continues.
enum Stage {
    Head,
    Grabs(Environment, Option<ExportCursor>),
    Ledger(Option<i64>),
    End,
}

/// The export of a team, on behalf of one of its owners: the team, its own limits, its members, invitations, keys,
/// webhooks, proxies, monitors, site jobs, credits, grabs and ledger. It is read in chunks on demand: a slow reader holds
/// one chunk in memory and no database connection.
///
/// The stream ends with an error when the database fails; the file must not look complete then. A
/// complete one ends with a line of the type `end`.
///
/// # Errors
/// See [`ArchiveError`]: the same limits as for archives apply, apart from them.
#[tracing::instrument(name = "export.team", skip_all)]
pub async fn team_export(
    core: &Core,
    team: TeamId,
) -> Result<impl Stream<Item = Result<Bytes, Fault>> + Send + use<>, ArchiveError> {
    let payer = find_payer(core, team).await?;
    let turn = core.grabs.exports.try_take(&payer.id)?;
    let lines = team_export_of(core.store.clone(), team, core.clock.now());
    Ok(lines.map(move |chunk| {
        let _held = &turn;
        chunk.map_err(|error| crate::Error::from(error).into_fault())
    }))
}

/// The same on behalf of an operator.
pub fn team_export_of(
    store: Store,
    team: TeamId,
    now: Timestamp,
) -> impl Stream<Item = Result<Bytes, Error>> + Send + use<> {
    chunks(store, team, now, CHUNK)
}

fn chunks(
    store: Store,
    team: TeamId,
    now: Timestamp,
    chunk: u32,
) -> impl Stream<Item = Result<Bytes, Error>> + Send + use<> {
    stream::try_unfold(Stage::Head, move |stage| {
        let store = store.clone();
        async move {
            let (values, next) = match stage {
                Stage::Head => (head(&store, team, now).await?, Stage::Grabs(Environment::Live, None)),
                Stage::Grabs(environment, after) => grabs(&store, team, environment, after, chunk).await?,
                Stage::Ledger(before) => ledger(&store, team, before, chunk).await?,
                Stage::End => return Ok(None),
            };
            let lines: String = values.into_iter().map(|value| format!("{value}\n")).collect();
            Ok(Some((Bytes::from(lines), next)))
        }
    })
}

/// Everything of which a team has few.
async fn head(store: &Store, team: TeamId, now: Timestamp) -> Result<Vec<Value>, Error> {
    let mut lines = Vec::new();
    if let Some(found) = store.accounts().find_team(team).await? {
        lines.push(json!({
            "type": "team", "id": found.id.to_string(), "name": found.name, "created_at": found.created_at.to_string(),
            "deleted_at": found.deleted_at.map(|at| at.to_string()), "exported_at": now.to_string(),
        }));
    }
    for StoredLimit { limit, value, .. } in store.limits().team_limits(team).await? {
        lines.push(json!({ "type": "limit", "name": limit.as_str(), "value": value }));
    }
    for member in store.accounts().list_members(team).await? {
        let second_factor = store.accounts().has_second_factor(member.user).await?;
        let passkeys = store.accounts().list_passkeys(member.user).await?.len();
        lines.push(json!({
            "type": "member", "user_id": member.user.to_string(), "email": member.email.as_str(),
            "role": member.role.as_str(), "since": member.created_at.to_string(), "second_factor": second_factor,
            "passkeys": passkeys,
        }));
    }
    for invitation in store.accounts().list_invitations(team, now).await? {
        lines.push(json!({
            "type": "invitation", "email": invitation.email.as_str(), "role": invitation.role.as_str(),
            "invited_by": invitation.invited_by.as_str(), "expires_at": invitation.expires_at.to_string(),
        }));
    }
    for key in store.accounts().list_keys(team).await? {
        lines.push(json!({
            "type": "key", "id": key.id.to_string(), "environment": key.environment.as_str(), "name": key.name,
            "last4": key.last4, "scopes": key.scopes.iter().map(Scope::as_str).collect::<Vec<_>>(),
            "created_by": key.created_by.map(|user| user.to_string()), "created_at": key.created_at.to_string(),
            "expires_at": key.expires_at.map(|at| at.to_string()),
            "last_used_at": key.last_used_at.map(|at| at.to_string()),
            "revoked_at": key.revoked_at.map(|at| at.to_string()),
        }));
    }
    for environment in [Environment::Live, Environment::Test] {
        for endpoint in store.webhooks().list_endpoints(team, environment, None).await? {
            lines.push(json!({
                "type": "webhook", "id": endpoint.id.to_string(), "environment": environment.as_str(),
                "url": endpoint.url.to_string(), "events": endpoint.events.words(),
                "description": endpoint.description, "disabled": endpoint.disabled.map(DisabledReason::as_str),
                "created_at": endpoint.created_at.to_string(), "created_by": endpoint.creator.map(creator_name),
            }));
        }
    }
    for environment in [Environment::Live, Environment::Test] {
        for proxy in store.proxies().list(team, environment, None).await? {
            lines.push(json!({
                "type": "proxy", "id": proxy.id.to_string(), "environment": environment.as_str(), "name": proxy.name,
                "url": proxy.url.to_string(), "has_login": proxy.has_login, "created_at": proxy.created_at.to_string(),
                "last_used_at": proxy.last_used_at.map(|at| at.to_string()),
            }));
        }
        add_monitors(store, team, environment, &mut lines).await?;
        add_sites(store, team, environment, &mut lines).await?;
    }
    for lot in store.credits().lots(team).await? {
        lines.push(json!({
            "type": "credits", "lot": lot.id.0, "kind": kind_name(lot.kind), "granted": lot.granted,
            "remaining": lot.remaining, "held": lot.held, "cancelled": lot.cancelled,
            "expires_at": lot.expires_at.map(|at| at.to_string()),
        }));
    }
    Ok(lines)
}

/// Adds the monitors, as the API shows them. Their captures are among the grabs.
async fn add_monitors(
    store: &Store,
    team: TeamId,
    environment: Environment,
    lines: &mut Vec<Value>,
) -> Result<(), Error> {
    let mut after = None;
    loop {
        let page = store.monitors().list(team, environment, None, after, CHUNK).await?;
        let environment = environment.as_str();
        for monitor in &page.monitors {
            lines.push(json!({ "type": "monitor", "environment": environment, "monitor": api_monitor(monitor) }));
        }
        after = page.monitors.last().map(|monitor| monitor.id);
        if !page.has_more {
            return Ok(());
        }
    }
}

/// Adds the site jobs, as the API shows them. Their captures are among the grabs.
async fn add_sites(store: &Store, team: TeamId, environment: Environment, lines: &mut Vec<Value>) -> Result<(), Error> {
    let mut after = None;
    loop {
        let list = store.sites().list(team, environment, None, after, CHUNK).await?;
        let environment = environment.as_str();
        for site in &list.sites {
            lines.push(json!({ "type": "site", "environment": environment, "site": api_site(site) }));
        }
        after = list.sites.last().map(|site| site.id);
        if !list.has_more {
            return Ok(());
        }
    }
}

const fn creator_name(creator: Creator) -> &'static str {
    match creator {
        Creator::Key => "key",
        Creator::User => "person",
        Creator::App(_) => "app",
    }
}

const fn kind_name(kind: LotKind) -> &'static str {
    match kind {
        LotKind::Subscription => "subscription",
        LotKind::Prepaid => "prepaid",
    }
}

async fn grabs(
    store: &Store,
    team: TeamId,
    environment: Environment,
    after: Option<ExportCursor>,
    chunk: u32,
) -> Result<(Vec<Value>, Stage), Error> {
    let ExportPage { grabs, unreadable, next } = store.grabs().export_grabs(team, environment, after, chunk).await?;
    let mut lines: Vec<Value> = grabs.iter().map(grab_line).collect();
    lines.extend(unreadable.iter().map(|id| json!({ "type": "unreadable_grab", "id": id.to_string() })));
    let next = match (next, environment) {
        (Some(cursor), _) => Stage::Grabs(environment, Some(cursor)),
        (None, Environment::Live) => Stage::Grabs(Environment::Test, None),
        (None, Environment::Test) => Stage::Ledger(None),
    };
    Ok((lines, next))
}

/// A grab with its request, which contains no secrets, and its result.
fn grab_line(grab: &Grab) -> Value {
    let mut line = json!({
        "type": "grab", "id": grab.id.to_string(), "environment": grab.environment.as_str(),
        "request": serde_json::to_value(&grab.spec).unwrap_or_default(), "attempts": grab.attempts,
        "created_at": grab.created_at.to_string(), "deleted_at": grab.deleted_at.map(|at| at.to_string()),
    });
    let result = match &grab.state {
        State::Pending => json!({ "status": "pending" }),
        State::Processing => json!({ "status": "processing" }),
        State::Done { finished_at, image, size_bytes, execution_ms, metadata } => json!({
            "status": "done", "finished_at": finished_at.to_string(),
            "image": image.as_ref().map(|image| image.as_str().to_owned()), "size_bytes": size_bytes,
            "execution_ms": execution_ms, "metadata": serde_json::to_value(metadata).unwrap_or_default(),
        }),
        State::Failed { finished_at, failure, metadata } => json!({
            "status": "failed", "finished_at": finished_at.to_string(), "error": failure.reason.code().as_str(),
            "error_code": failure.reason.code().as_str(), "error_message": failure.message,
            "error_cause": failure.cause.as_str(),
            "metadata": serde_json::to_value(metadata).unwrap_or_default(),
        }),
    };
    if let (Some(line), Value::Object(result)) = (line.as_object_mut(), result) {
        line.extend(result);
    }
    line
}

async fn ledger(store: &Store, team: TeamId, before: Option<i64>, chunk: u32) -> Result<(Vec<Value>, Stage), Error> {
    let entries = store.credits().ledger(team, before, chunk).await?;
    let is_last = entries.len() < usize::try_from(chunk).unwrap_or(usize::MAX);
    let next = entries.last().map(|entry| entry.id).filter(|_| !is_last);
    let line = |Entry { id, lot, kind, amount, grab, reference, at }: &Entry| {
        json!({
            "type": "ledger", "entry": id, "at": at.to_string(), "kind": kind.as_str(), "credits": amount,
            "lot": lot.0, "grab_id": grab.map(|grab| grab.to_string()), "reference": reference,
        })
    };
    let mut lines: Vec<Value> = entries.iter().map(line).collect();
    match next {
        Some(before) => Ok((lines, Stage::Ledger(Some(before)))),
        None => {
            lines.push(json!({ "type": "end" }));
            Ok((lines, Stage::End))
        }
    }
}
