//! Finishes runs, and sends the mail of their alerts.

use grabd_domain::ids::{MonitorId, RunId};
use grabd_store::Error;
use grabd_store::monitors::{FinishedRun, RunResult};

use super::alerts::send_mail;
use crate::failpoints::{self, Step};
use crate::service::Core;
use crate::webhooks::monitor_message;

/// Finishes a run, unless it was finished before. Its webhook messages are enqueued in the same transaction, and mail is best
/// effort.
///
/// # Errors
/// Errors of the database as a whole.
pub(super) async fn finish(core: &Core, run: RunId, result: RunResult) -> Result<(), Error> {
    failpoints::reach(core, Step::RunEnded, None).await?;
    let now = core.clock.now();
    let Some(finished) = core.store.monitors().finish_run(run, result, now, monitor_message).await? else {
        return Ok(());
    };
    failpoints::reach(core, Step::RunFinished, None).await?;
    let FinishedRun { monitor, run, alerts, has_run_out, .. } = &finished;
    core.metrics.run_ended(run.outcome);
    tracing::info!(
        monitor.id = %monitor.id,
        run.id = %run.id,
        outcome = run.outcome.as_str(),
        alerts = alerts.len(),
        "a run of a monitor has ended"
    );
    if *has_run_out {
        tracing::info!(team.id = %monitor.team, "monitors wait for credits");
    }
    if !alerts.is_empty() {
        core.webhooks.notify();
    }
    send_mail(core, &finished);
    Ok(())
}

/// Sends the alerts of a monitor whose quiet hours have ended.
///
/// # Errors
/// Errors of the database as a whole.
pub(super) async fn send_held(core: &Core, monitor: MonitorId) -> Result<(), Error> {
    let now = core.clock.now();
    let Some(sent) = core.store.monitors().send_held(monitor, now, monitor_message).await? else { return Ok(()) };
    tracing::info!(monitor.id = %monitor, alerts = sent.alerts.len(), "the alerts of quiet hours were sent");
    if !sent.alerts.is_empty() {
        core.webhooks.notify();
    }
    send_mail(core, &sent);
    Ok(())
}
