//! Monitors: create, get, list, change, accept a baseline, remove.

use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::ids::{GrabId, MonitorId};
use grabd_domain::monitor::{MAX_CAPTURE_BYTES, Monitor, MonitorChange, MonitorRequest, MonitorSpec, Phase};
use grabd_domain::{Fault, Timestamp};
use grabd_store::monitors::{
    AcceptOutcome, ChangeOutcome, CreateMonitorOutcome, MonitorPage, MonitorRef, MonitorUpdate, NewMonitor,
};

use super::secrets;
use crate::error::Error;
use crate::list_parameters::{invalid_cursor, parse_typed_limit};
use crate::service::Core;
use crate::{proxies, random, targets};

const CURSOR: &str = "the id of a monitor";

/// A list request, not validated yet.
#[derive(Debug, Default)]
pub struct ListRequest {
    /// Maximum number of entries.
    pub limit: Option<i64>,
    /// Only entries after this one in the list, which are older.
    pub starting_after: Option<String>,
    /// Parameters whose value had the wrong type, with the received value.
    pub unparsed: Vec<(String, String)>,
}

/// Creates a monitor. One of an app is deleted with its grant.
///
/// # Errors
/// [`Fault::BadRequest`] and others of a create, with the invalid member. [`Fault::Unauthorized`] when the grant of the app has
/// ended in the meantime.
#[tracing::instrument(name = "monitors.create", skip_all)]
pub async fn create(core: &Core, caller: Caller, request: &MonitorRequest) -> Result<Monitor, Error> {
    let spec = MonitorSpec::parse(request, core.settings.operations.monitors.shortest)?;
    check_capture(core, caller, &spec.capture).await?;
    let new = new_monitor(core, caller, spec, core.clock.now())?;
    let keep = new.spec.keep;
    let outcome = core.store_for(caller).monitors().create(new).await?;
    Ok(*created(core, outcome, 1, keep)?)
}

/// A monitor to create, whose capture has been checked.
pub(super) fn new_monitor(core: &Core, caller: Caller, spec: MonitorSpec, now: Timestamp) -> Result<NewMonitor, Error> {
    let limits = core.settings.operations.monitors;
    let id = random::monitor_id(now);
    let secrets = secrets::seal(&core.vault, id, &spec.capture)?;
    check_size(&spec.capture, secrets.as_deref())?;
    let Caller { team, environment, principal } = caller;
    Ok(NewMonitor {
        id,
        team,
        environment,
        creator: principal,
        secrets,
        spec,
        phase: Phase::of(id),
        limit: limits.per_team.into(),
        kept_limit: limits.kept_runs(),
        now,
    })
}

/// What was created, which the scheduler is told, or why so many monitors that keep so many runs each were not.
pub(super) fn created<T>(core: &Core, outcome: CreateMonitorOutcome<T>, count: usize, keep: u32) -> Result<T, Fault> {
    match outcome {
        CreateMonitorOutcome::Created(created) => {
            core.monitors.notify();
            Ok(created)
        }
        CreateMonitorOutcome::TooMany => Err(too_many(core, count)),
        CreateMonitorOutcome::TooManyRuns { left } => {
            Err(too_many_runs(keep, left / u64::try_from(count.max(1)).unwrap_or(u64::MAX)))
        }
        CreateMonitorOutcome::TeamInactive => Err(Fault::TeamSuspended),
        CreateMonitorOutcome::AccessEnded => Err(Fault::Unauthorized),
    }
}

/// The error of a team that cannot have so many more monitors.
pub(super) fn too_many(core: &Core, count: usize) -> Fault {
    let per_team = core.settings.operations.monitors.per_team;
    let seen = if count == 1 { "one more".to_owned() } else { format!("{count} more") };
    Fault::BadRequest(Field::new("monitors", &seen, format!("at most {per_team} for the team in this environment")))
}

/// Returns a monitor of the caller's team, or of the app that calls.
///
/// # Errors
/// [`Fault::NotFound`] when the monitor does not exist or is not the caller's.
#[tracing::instrument(name = "monitors.get", skip_all)]
pub async fn get(core: &Core, caller: Caller, id: MonitorId) -> Result<Monitor, Error> {
    let monitor = core.store.monitors().find(monitor_of(caller, id)).await;
    Ok(monitor?.ok_or_else(not_found)?)
}

/// A page of the monitors of the caller's team, or of those of the app that calls, newest first.
///
/// # Errors
/// [`Fault::BadRequest`] with the invalid parameter.
#[tracing::instrument(name = "monitors.list", skip_all)]
pub async fn list(core: &Core, caller: Caller, request: &ListRequest) -> Result<MonitorPage, Error> {
    let limit = parse_typed_limit(request.limit, &request.unparsed, CURSOR)?;
    let after = match request.starting_after.as_deref() {
        None => None,
        Some(text) => Some(text.parse::<MonitorId>().map_err(|_| invalid_cursor(text, CURSOR))?),
    };
    let Caller { team, environment, principal } = caller;
    let page = core.store.monitors().list(team, environment, principal.grant(), after, limit).await;
    Ok(page?)
}

/// Changes the given members of a monitor. A new schedule starts now, and so does that of a monitor whose pause ends.
///
/// # Errors
/// [`Fault::NotFound`], then the same as [`create`].
#[tracing::instrument(name = "monitors.update", skip_all)]
pub async fn change(core: &Core, caller: Caller, id: MonitorId, request: &MonitorRequest) -> Result<Monitor, Error> {
    let current = get(core, caller, id).await?;
    let change = MonitorChange::parse(request, &current.spec, core.settings.operations.monitors.shortest)?;
    let secrets = match &change.capture {
        Some(capture) => {
            check_capture(core, caller, capture).await?;
            let sealed = secrets::seal(&core.vault, id, capture)?;
            check_size(capture, sealed.as_deref())?;
            sealed
        }
        None => None,
    };
    let new_keep = change.keep.unwrap_or(current.spec.keep);
    let kept_limit = core.settings.operations.monitors.kept_runs();
    let update = MonitorUpdate { target: monitor_of(caller, id), change, secrets, kept_limit, now: core.clock.now() };
    match core.store_for(caller).monitors().change(update).await? {
        ChangeOutcome::Changed(monitor) => Ok(*monitor),
        ChangeOutcome::NotFound => Err(not_found().into()),
        ChangeOutcome::TooManyRuns { left } => Err(too_many_runs(new_keep, left).into()),
    }
}

/// Makes the capture of a run the baseline: that of this grab, or of the latest done run.
///
/// # Errors
/// [`Fault::NotFound`] when the monitor does not exist or is not the caller's, and [`Fault::BadRequest`] when there is no such
/// capture.
#[tracing::instrument(name = "monitors.accept", skip_all)]
pub async fn accept(core: &Core, caller: Caller, id: MonitorId, grab: Option<&str>) -> Result<Monitor, Error> {
    let allowed = "the id of a done grab of this monitor that has an image";
    let refused = || {
        let seen = grab.map_or_else(String::new, |grab| format!("\"{grab}\""));
        Fault::BadRequest(Field::new("grab_id", &seen, allowed))
    };
    let target = monitor_of(caller, id);
    let parsed: Option<GrabId> = match grab {
        None => None,
        Some(text) => match text.parse::<GrabId>() {
            Ok(parsed) => Some(parsed),
            Err(_) => {
                get(core, caller, id).await?;
                return Err(refused().into());
            }
        },
    };
    match core.store_for(caller).monitors().accept(target, parsed, core.clock.now()).await? {
        AcceptOutcome::Accepted(monitor) => Ok(*monitor),
        AcceptOutcome::NotFound => Err(not_found().into()),
        AcceptOutcome::NoCapture => Err(refused().into()),
    }
}

/// Deletes a monitor with its runs. Their grabs stay.
///
/// # Errors
/// [`Fault::NotFound`].
#[tracing::instrument(name = "monitors.delete", skip_all)]
pub async fn remove(core: &Core, caller: Caller, id: MonitorId) -> Result<(), Error> {
    match core.store_for(caller).monitors().remove(monitor_of(caller, id)).await? {
        true => Ok(()),
        false => Err(not_found().into()),
    }
}

/// Checks the size of what is stored: a team may have many monitors, and their captures are not counted as what it stores.
fn check_size(capture: &CaptureSpec, sealed: Option<&[u8]>) -> Result<(), Error> {
    let bytes = serde_json::to_vec(&capture.without_secrets())?.len() + sealed.map_or(0, <[u8]>::len);
    if bytes <= MAX_CAPTURE_BYTES {
        return Ok(());
    }
    let allowed = format!("an object whose options take at most {MAX_CAPTURE_BYTES} bytes");
    Err(Fault::BadRequest(Field::new("capture", &format!("{bytes} bytes"), allowed)).into())
}

fn too_many_runs(keep: u32, left: u64) -> Fault {
    let allowed = format!("at most {left}, since all monitors of the team together keep a limited number of runs");
    Fault::BadRequest(Field::new("keep", &keep.to_string(), allowed))
}

/// Makes those checks of the create of a grab that do not depend on the time.
async fn check_capture(core: &Core, caller: Caller, capture: &CaptureSpec) -> Result<(), Error> {
    check_options(core, caller, capture).await?;
    // Nothing is requested from the URL of a caller's document.
    if capture.has_own_document() {
        return Ok(());
    }
    targets::check_page_url(core, &capture.url)?;
    targets::check_host(core, &capture.url).await?;
    Ok(())
}

/// The checks of a capture that do not depend on its page.
pub(super) async fn check_options(core: &Core, caller: Caller, capture: &CaptureSpec) -> Result<(), Error> {
    capture.blocking.check_lists(&core.settings.operations.listed_contents)?;
    proxies::check(core, caller, capture).await?;
    Ok(())
}

pub(super) const fn monitor_of(caller: Caller, monitor: MonitorId) -> MonitorRef {
    let Caller { team, environment, principal } = caller;
    MonitorRef { team, environment, grant: principal.grant(), monitor }
}

pub(super) const fn not_found() -> Fault {
    Fault::NotFound { what: "monitor" }
}
