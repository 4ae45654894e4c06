//! Finishes runs: writes their outcome, and what the next run needs, and enqueues the alerts.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, State};
use grabd_domain::ids::{DeliveryId, EndpointId, GrabId, GrantId, RunId, TeamId};
use grabd_domain::monitor::{
    Alerts, Compared, Monitor, MonitorState, Notify, Progress, Run, RunDecision, RunError, RunOutcome, TextResult,
};
use grabd_domain::webhooks::Event;
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder};
use uuid::Uuid;

use super::claim::usable_baseline;
use super::keep::delete_old_runs;
use super::queries::RUNS;
use super::start::lock_open_run;
use crate::Result;
use crate::areas::Monitors;
use crate::codes::{DONE, FAILED};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, monitor, monitor_run, team};
use crate::low_balance::find_recipients;
use crate::webhooks::enqueue::enqueue_for_team;

/// What ends a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// Its grab has ended. With the result for the texts, if they were compared.
    Grab(Option<TextResult>),
    /// No grab could be created.
    Failed(RunError),
    /// No grab could be created, because the team has no credits.
    OutOfCredits(RunError),
}

/// An alert about a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorAlert {
    /// What has happened.
    pub event: Event,
    /// The monitor after the run.
    pub monitor: Monitor,
    /// The run.
    pub run: Run,
}

/// Composes the webhook message of an alert.
pub type AlertText = fn(&MonitorAlert, DeliveryId, Timestamp) -> String;

/// A run that this call has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedRun {
    /// The monitor after the run.
    pub monitor: Monitor,
    /// The run. It is not kept if the monitor had no credits before, too.
    pub run: Run,
    /// The alerts, whose webhook messages are enqueued.
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
        let monitor = monitor::read(&row, None)?;
        match &self.result {
            RunResult::Grab(texts) => match ending_of_grab(tx, &monitor, &open, texts.as_ref()).await? {
                Some(ending) => self.finish(tx, monitor, &open, ending).await.map(Some),
                None => Ok(None),
            },
            RunResult::Failed(error) => self.finish(tx, monitor, &open, Ending::failed(error.clone())).await.map(Some),
            RunResult::OutOfCredits(error) => self.pause_without_credits(tx, monitor, &open, error).await.map(Some),
        }
    }
}

impl FinishRun {
    async fn finish(
        &self,
        tx: &Tx,
        monitor: Monitor,
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
        // Without a comparison of the texts, nothing is known if all else is the same.
        let is_unknown = ending.compared.is_text_missing && ending.outcome == RunOutcome::Same;
        let decision = match (is_outdated && ending.outcome != RunOutcome::Failed) || is_unknown {
            true => RunDecision { progress: monitor.progress, alerts: Alerts::default(), is_baseline: false },
            false => decided,
        };
        let is_live = monitor.environment == Environment::Live;
        let sends = is_live && (monitor.spec.notify.webhook || monitor.spec.notify.email);
        let alerts = if sends { decision.alerts } else { Alerts::default() };
        let run = end_run(tx, open, ending, alerts.changed, self.now).await?;
        let next_baseline = if decision.is_baseline { open.grab_id.map(GrabId) } else { baseline };
        remember(tx, monitor.id.0, decision.progress, next_baseline).await?;
        delete_old_runs(tx, monitor.id.0, monitor.spec.keep).await?;
        let monitor =
            Monitor { progress: decision.progress, baseline: next_baseline, last_run: Some(run.clone()), ..monitor };
        let events = events_of(alerts).into_iter();
        let alerts: Vec<MonitorAlert> =
            events.map(|event| MonitorAlert { event, monitor: monitor.clone(), run: run.clone() }).collect();
        if monitor.spec.notify.webhook {
            for alert in &alerts {
                self.enqueue(tx, alert).await?;
            }
        }
        let has_mail = monitor.spec.notify.email && !alerts.is_empty();
        let recipients = if has_mail { find_recipients(tx, monitor.team).await? } else { Vec::new() };
        let team_name = if has_mail { team_name(tx, monitor.team).await? } else { String::new() };
        Ok(FinishedRun { monitor, run, alerts, has_run_out: false, team_name, recipients })
    }

    /// Enqueues the webhook messages of an alert.
    async fn enqueue(&self, tx: &Tx, alert: &MonitorAlert) -> Result<()> {
        let message = |endpoint: EndpointId| {
            // A deterministic id: the same event of a run always gets the same one.
            let name = [alert.event.as_str().as_bytes(), alert.run.id.0.as_bytes()].concat();
            let id = DeliveryId(Uuid::new_v5(&endpoint.0, &name));
            (id, (self.text)(alert, id, self.now))
        };
        // An app sees only the monitors that it has created.
        let creator = alert.monitor.creator.grant();
        let may_get = |app: Option<GrantId>| app.is_none() || app == creator;
        enqueue_for_team(tx, alert.monitor.team, alert.event, may_get, message, self.now).await
    }

    /// Ends a run for which there is no credit. Only the first one is kept, so that others do not replace the history.
    async fn pause_without_credits(
        &self,
        tx: &Tx,
        monitor: Monitor,
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
            delete_old_runs(tx, monitor.id.0, monitor.spec.keep).await?;
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
    texts: Option<&TextResult>,
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
    // Nothing of the text of a deleted grab is kept.
    let texts = texts.filter(|_| grab.deleted_at.is_none() && baseline.deleted_at.is_none());
    Ok(Some(match monitor.spec.compare.compare(&baseline, &grab, texts) {
        None => Ending::of(RunOutcome::First),
        Some(compared) => {
            let outcome = if compared.changes.is_empty() { RunOutcome::Same } else { RunOutcome::Changed };
            let error = compared.is_text_missing.then(|| {
                RunError::new("text_not_compared", &"The text could not be read, so that it was not compared.")
            });
            Ending { outcome, compared, error }
        }
    }))
}

/// Writes the outcome of a run.
async fn end_run(tx: &Tx, open: &monitor_run::Model, ending: Ending, is_alerted: bool, now: Timestamp) -> Result<Run> {
    let Ending { outcome, compared, error } = ending;
    let Compared { difference_ppm, changes, text_changes, is_text_missing: _ } = compared;
    let (code, message) = error.map(|error| (error.code, error.message)).unzip();
    let ended = monitor_run::ActiveModel {
        id: Unchanged(open.id),
        outcome: Set(monitor_run::outcome(outcome)),
        difference_ppm: Set(difference_ppm.map(|ppm| i32::try_from(ppm).unwrap_or(i32::MAX))),
        changes: Set(monitor_run::changes(&changes)),
        text_changes: Set(monitor_run::text_changes(&text_changes)?),
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
async fn remember(tx: &Tx, monitor: Uuid, progress: Progress, baseline: Option<GrabId>) -> Result<()> {
    let Progress { differing, is_change_reported, failures, is_failure_reported } = progress;
    let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let changed = monitor::ActiveModel {
        id: Unchanged(monitor),
        differing: Set(count(differing)),
        change_reported: Set(i16::from(is_change_reported)),
        failures: Set(count(failures)),
        failure_reported: Set(i16::from(is_failure_reported)),
        baseline_grab_id: Set(baseline.map(|grab| grab.0)),
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

async fn team_name(tx: &Tx, team: TeamId) -> Result<String> {
    let found = team::Entity::find_by_id(team.0).one(tx).await?;
    Ok(found.map(|row| row.name).unwrap_or_default())
}
