//! The mail about a run.

use grabd_store::monitors::{FinishedRun, MonitorAlert};

use crate::mail::templates::{self, MonitorMail};
use crate::service::Core;

/// Best effort: nothing is sent when mail is not configured or the queue is full.
pub(super) fn send_mail(core: &Core, finished: &FinishedRun) {
    let Some(mailer) = &core.accounts.mailer else { return };
    let FinishedRun { monitor, run: _, alerts, has_run_out, team_name, recipients } = finished;
    let link = format!("{}/teams/{}/monitors/{}", core.public_url(), monitor.team, monitor.id);
    let events = alerts.iter().filter_map(|MonitorAlert { event, run, .. }| MonitorMail::of(*event, run));
    let out_of_credits = has_run_out.then_some(MonitorMail::OutOfCredits);
    let mails: Vec<MonitorMail> = events.chain(out_of_credits).collect();
    if recipients.is_empty() {
        return;
    }
    for mail in &mails {
        if !core.monitors.may_mail(monitor.team) {
            tracing::warn!(team.id = %monitor.team, monitor.id = %monitor.id, "too many alerts of monitors: no mail is sent");
            return;
        }
        for recipient in recipients {
            let message =
                templates::monitor(recipient.clone(), mail, &monitor.spec.name, team_name, &core.host(), &link);
            let _ = mailer.enqueue(message);
        }
    }
}
