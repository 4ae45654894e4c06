//! Finishes runs: writes their outcome, and what the next run needs, and enqueues the alerts.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, State};
use grabd_domain::ids::{GrabId, RunId};
use grabd_domain::monitor::{
    Alerts, Compared, FileResults, Monitor, MonitorState, Notify, Progress, Run, RunDecision, RunError, RunOutcome,
};
use grabd_domain::webhooks::Event;
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder};
use uuid::Uuid;

use super::alerts::{self, AlertText, MonitorAlert, Sent};
use super::claim::usable_baseline;
use super::held::Held;
use super::keep::delete_old_runs;
use super::queries::RUNS;
use super::start::lock_open_run;
use crate::Result;
use crate::areas::Monitors;
use crate::codes::{DONE, FAILED};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, monitor, monitor_run};
use crate::low_balance::find_recipients;
use crate::team_name::team_name;

/// What ends a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// Its grab has ended. With the results for the texts and elements, if they were compared.
    Grab(FileResults),
    /// No grab could be created.
    Failed(RunError),
    /// No grab could be created, because the team has no credits.
    OutOfCredits(RunError),
}

/// A run that this call has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedRun {
    /// The monitor after the run.
    pub monitor: Monitor,
    /// The run. It is not kept if the monitor had no credits before, too.
    pub run: Run,
    /// The alerts that are sent now. Their webhook messages are enqueued.
    pub alerts: Vec<MonitorAlert>,
    /// Whether the team has run out of credits: this is the first of its live monitors with mail that has none.
    pub has_run_out: bool,
    /// The name of the team.
    pub team_name: String,
    /// Who gets mail about alerts and credits. Empty if there is nothing to say, or if the monitor sends no mail.
    pub recipients: Vec<Email>,
}

struct FinishRun {
    run: RunId,
    result: RunResult,
    now: Timestamp,
    text: AlertText,
}

impl Monitors<'_> {
    /// Finishes an open run. `None` if it was finished before, if its grab has not ended, or if it has a grab although this
    /// process could not create one: another one did. A run that cannot be processed is set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn finish_run(
        self,
        run: RunId,
        result: RunResult,
        now: Timestamp,
        text: AlertText,
    ) -> Result<Option<FinishedRun>> {
        let finished = self.store.database.write(FinishRun { run, result, now, text }).await;
        Ok(self.store.set_aside.unless_row_fails(RUNS, &run.0, now, finished)?.flatten())
    }
}

/// What is known of a run that ends.
struct Ending {
    outcome: RunOutcome,
    compared: Compared,
    error: Option<RunError>,
}

impl Ending {
    fn of(outcome: RunOutcome) -> Self {
        Self { outcome, compared: Compared::default(), error: None }
    }

    fn failed(error: RunError) -> Self {
        Self { error: Some(error), ..Self::of(RunOutcome::Failed) }
    }
}

impl Transaction for FinishRun {
    type Outcome = Option<FinishedRun>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<FinishedRun>> {
        let Some((row, open)) = lock_open_run(tx, self.run).await? else { return Ok(None) };
        // The caller is charged for the grab. So it decides how the run ends, even if a slower start reports an error.
        if !matches!(self.result, RunResult::Grab(_)) && open.grab_id.is_some() {
            return Ok(None);
        }
        let (monitor, held) = (monitor::read(&row, None)?, Held::of(&row));
        match &self.result {
            RunResult::Grab(files) => match ending_of_grab(tx, &monitor, &open, files).await? {
                Some(ending) => self.finish(tx, (monitor, held), &open, ending).await.map(Some),
                None => Ok(None),
            },
            RunResult::Failed(error) => {
                self.finish(tx, (monitor, held), &open, Ending::failed(error.clone())).await.map(Some)
            }
            RunResult::OutOfCredits(error) => {
                self.pause_without_credits(tx, (monitor, held), &open, error).await.map(Some)
            }
        }
    }
}

impl FinishRun {
    async fn finish(
        &self,
        tx: &Tx,
        (monitor, held): (Monitor, Held),
        open: &monitor_run::Model,
        ending: Ending,
    ) -> Result<FinishedRun> {
        let baseline = monitor.baseline;
        // If another capture was accepted meanwhile, the comparison is outdated and nothing follows from it.
        let is_outdated = match open.compared_to {
            Some(compared_to) => baseline != Some(GrabId(compared_to)),
            None => usable_baseline(tx, baseline, monitor.spec.compare.needs_files()).await?.is_some(),
        };
        let decided = monitor.progress.decide(ending.outcome, monitor.spec.alert_after, monitor.spec.compare.baseline);
        // Without a comparison of a file, nothing is known if all else is the same.
        let is_unknown = ending.compared.is_incomplete() && ending.outcome == RunOutcome::Same;
        let decision = match (is_outdated && ending.outcome != RunOutcome::Failed) || is_unknown {
            true => RunDecision { progress: monitor.progress, alerts: Alerts::default(), is_baseline: false },
            false => decided,
        };
        let is_live = monitor.environment == Environment::Live;
        let sends = is_live && (monitor.spec.notify.webhook || monitor.spec.notify.email);
        let alerts = if sends { decision.alerts } else { Alerts::default() };
        let run = end_run(tx, open, ending, alerts.changed, self.now).await?;
        let next_baseline = if decision.is_baseline { open.grab_id.map(GrabId) } else { baseline };
        let later = held.with(alerts, open.id, monitor.spec.quiet.as_ref(), self.now);
        let held = later.unwrap_or(held);
        remember(tx, monitor.id.0, decision.progress, next_baseline, held).await?;
        delete_old_runs(tx, monitor.id.0, monitor.spec.keep, held).await?;
        let monitor =
            Monitor { progress: decision.progress, baseline: next_baseline, last_run: Some(run.clone()), ..monitor };
        let events = if later.is_some() { Vec::new() } else { events_of(alerts) };
        let events = events.into_iter().map(|event| (event, run.clone())).collect();
        let Sent { alerts, team_name, recipients } = alerts::send(tx, &monitor, events, self.text, self.now).await?;
        Ok(FinishedRun { monitor, run, alerts, has_run_out: false, team_name, recipients })
    }

    /// Ends a run for which there is no credit. Only the first one is kept, so that others do not replace the history.
    async fn pause_without_credits(
        &self,
        tx: &Tx,
        (monitor, held): (Monitor, Held),
        open: &monitor_run::Model,
        error: &RunError,
    ) -> Result<FinishedRun> {
        let is_first = monitor.state != MonitorState::OutOfCredits;
        // Monitors that send no mail, and those of test keys, do not keep the mail of the others from being sent.
        let sends_mail = monitor.spec.notify.email && monitor.environment == Environment::Live;
        let with_mail = [false, true].map(|webhook| monitor::notify(Notify { webhook, email: true }));
        let waiting = monitor::of_team(monitor.team, Environment::Live)
            .filter(monitor::Column::State.eq(monitor::state(MonitorState::OutOfCredits)))
            .filter(monitor::Column::Notify.is_in(with_mail));
        let has_run_out = is_first && sends_mail && waiting.count(tx).await? == 0;
        let run = end_run(tx, open, Ending::failed(error.clone()), false, self.now).await?;
        let state = match monitor.state {
            MonitorState::Active => MonitorState::OutOfCredits,
            MonitorState::Paused | MonitorState::OutOfCredits => monitor.state,
        };
        let mut change = monitor::ActiveModel {
            id: Unchanged(monitor.id.0),
            state: Set(monitor::state(state)),
            ..Default::default()
        };
        if is_first {
            delete_old_runs(tx, monitor.id.0, monitor.spec.keep, held).await?;
        } else {
            monitor_run::Entity::delete_by_id(open.id).exec(tx).await?;
            change.last_run_id = Set(latest_run(tx, monitor.id.0).await?);
        }
        change.update(tx).await?;
        let recipients = if has_run_out { find_recipients(tx, monitor.team).await? } else { Vec::new() };
        let team_name = if has_run_out { team_name(tx, monitor.team).await? } else { String::new() };
        let monitor = Monitor { state, last_run: Some(run.clone()), ..monitor };
        Ok(FinishedRun { monitor, run, alerts: Vec::new(), has_run_out, team_name, recipients })
    }
}

/// How a run ends whose grab has ended. `None` if that has not ended.
async fn ending_of_grab(
    tx: &Tx,
    monitor: &Monitor,
    open: &monitor_run::Model,
    files: &FileResults,
) -> Result<Option<Ending>> {
    let Some(id) = open.grab_id else { return Ok(None) };
    let Some(found) = grab::Entity::find_by_id(id).one(tx).await? else {
        let error = RunError::new("not_found", &"The capture was deleted before it could be compared.");
        return Ok(Some(Ending::failed(error)));
    };
    let has_ended = found.status == DONE || found.status == FAILED;
    if !has_ended {
        return Ok(None);
    }
    let grab: Grab = grab::read(found, None)?;
    if let State::Failed { failure, .. } = &grab.state {
        let error = RunError::new(failure.reason.code().as_str(), &failure.message);
        return Ok(Some(Ending::failed(error)));
    }
    let baseline = match open.compared_to {
        Some(baseline) => grab::Entity::find_by_id(baseline).one(tx).await?,
        None => None,
    };
    // A baseline that was deleted, or whose status is not known any more, is replaced.
    let Some(baseline) = baseline.filter(|baseline| baseline.status == DONE) else {
        return Ok(Some(Ending::of(RunOutcome::First)));
    };
    let baseline = grab::read(baseline, None)?;
    // Nothing of the text and the elements of a deleted grab is kept.
    let is_deleted = grab.deleted_at.is_some() || baseline.deleted_at.is_some();
    let none = FileResults::default();
    let files = if is_deleted { &none } else { files };
    Ok(Some(match monitor.spec.compare.compare(&baseline, &grab, files) {
        None => Ending::of(RunOutcome::First),
        Some(compared) => {
            let outcome = if compared.changes.is_empty() { RunOutcome::Same } else { RunOutcome::Changed };
            let error = not_compared(&compared);
            Ending { outcome, compared, error }
        }
    }))
}

/// Why something was not compared, if so.
fn not_compared(Compared { is_text_missing, are_elements_missing, .. }: &Compared) -> Option<RunError> {
    let (code, what) = match (is_text_missing, are_elements_missing) {
        (false, false) => return None,
        (true, false) => ("text_not_compared", "The text could not be read, so that it was not compared."),
        (false, true) => ("elements_not_compared", "The elements could not be read, so that they were not compared."),
        (true, true) => {
            ("text_not_compared", "The text and the elements could not be read, so that they were not compared.")
        }
    };
    Some(RunError::new(code, &what))
}

/// Writes the outcome of a run.
async fn end_run(tx: &Tx, open: &monitor_run::Model, ending: Ending, is_alerted: bool, now: Timestamp) -> Result<Run> {
    let Ending { outcome, compared, error } = ending;
    let Compared {
        difference_ppm,
        changes,
        text_changes,
        element_changes,
        is_text_missing: _,
        are_elements_missing: _,
    } = compared;
    let (code, message) = error.map(|error| (error.code, error.message)).unzip();
    let ended = monitor_run::ActiveModel {
        id: Unchanged(open.id),
        outcome: Set(monitor_run::outcome(outcome)),
        difference_ppm: Set(difference_ppm.map(|ppm| i32::try_from(ppm).unwrap_or(i32::MAX))),
        changes: Set(monitor_run::changes(&changes)),
        text_changes: Set(monitor_run::text_changes(&text_changes)?),
        element_changes: Set(monitor_run::element_changes(&element_changes)?),
        alerted: Set(i16::from(is_alerted)),
        finished_at: Set(Some(now.as_ms())),
        error_code: Set(code),
        error_message: Set(message),
        check_at: Set(None),
        ..Default::default()
    };
    monitor_run::read(&ended.update(tx).await?)
}

/// Writes what is remembered for the next run.
async fn remember(tx: &Tx, monitor: Uuid, progress: Progress, baseline: Option<GrabId>, held: Held) -> Result<()> {
    let Progress { differing, is_change_reported, failures, is_failure_reported } = progress;
    let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let changed = monitor::ActiveModel {
        id: Unchanged(monitor),
        differing: Set(count(differing)),
        change_reported: Set(i16::from(is_change_reported)),
        failures: Set(count(failures)),
        failure_reported: Set(i16::from(is_failure_reported)),
        baseline_grab_id: Set(baseline.map(|grab| grab.0)),
        held_until: Set(held.until.map(Timestamp::as_ms)),
        held_change_id: Set(held.change),
        held_failure_id: Set(held.failure),
        ..Default::default()
    };
    changed.update(tx).await?;
    Ok(())
}

/// The events of alerts, in the order in which they are reported.
fn events_of(Alerts { changed, failed, recovered }: Alerts) -> Vec<Event> {
    let all = [(recovered, Event::MonitorRecovered), (changed, Event::MonitorChanged), (failed, Event::MonitorFailed)];
    all.into_iter().filter_map(|(is_set, event)| is_set.then_some(event)).collect()
}

async fn latest_run(tx: &Tx, monitor: Uuid) -> Result<Option<Uuid>> {
    let latest = monitor_run::Entity::find()
        .filter(monitor_run::Column::MonitorId.eq(monitor))
        .order_by_desc(monitor_run::Column::DueAt)
        .one(tx)
        .await?;
    Ok(latest.map(|run| run.id))
}
