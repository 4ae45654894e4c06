//! Reports jobs that have ended.

use grabd_store::sites::{FinishedSite, StoppedSite};

use crate::mail::templates;
use crate::service::Core;

/// Counts and logs a job that has ended, and wakes the sender of its messages.
pub(super) fn report(core: &Core, finished: Option<&FinishedSite>) {
    let Some(FinishedSite { site }) = finished else { return };
    core.sites.robots.forget(site.id);
    core.metrics.site_ended(site.state);
    tracing::info!(
        site.id = %site.id,
        state = site.state.as_str(),
        captured = site.pages.captured,
        failed = site.pages.failed,
        "a site job has ended"
    );
    core.webhooks.notify();
}

/// Reports a job that was stopped, and sends the mail about missing credits. Best effort: nothing is sent when mail is not
/// configured or the queue is full.
pub(super) fn report_stop(core: &Core, stopped: &StoppedSite) {
    let StoppedSite { finished, out_of_credits, recipients } = stopped;
    report(core, finished.as_ref());
    let (Some((site, team_name)), Some(mailer)) = (out_of_credits, &core.accounts.mailer) else { return };
    if recipients.is_empty() {
        return;
    }
    if !core.sites.may_mail(site.team) {
        tracing::warn!(team.id = %site.team, site.id = %site.id, "too many mails about site jobs: none is sent");
        return;
    }
    let link = format!("{}/teams/{}/sites/{}", core.public_url(), site.team, site.id);
    for recipient in recipients {
        let (name, host) = (&site.spec.name, core.host());
        let message = templates::site_out_of_credits(recipient.clone(), name, team_name, &host, &link);
        let _ = mailer.enqueue(message);
    }
}
