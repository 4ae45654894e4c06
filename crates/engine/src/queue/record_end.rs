//! Runs after every end of a grab: logs it, counts it, and notifies those who wait.

use grabd_domain::grabs::{Grab, State};

use crate::service::Core;

/// Logs and counts the end of a grab, and notifies watchers and the webhook sender. The end must be stored already.
pub(crate) fn record_end(core: &Core, grab: Grab) {
    core.queue.request_spans.take(grab.id).in_scope(|| log(&grab));
    core.metrics.grab_ended(&grab);
    core.bus.grab_changed(grab.id);
    core.queue.watchers.publish(grab);
    core.webhooks.notify();
}

fn log(grab: &Grab) {
    let host = grab.spec.url.host();
    match &grab.state {
        State::Done { size_bytes, execution_ms, metadata, finished_at, .. } => tracing::info!(
            grab.id = %grab.id, team.id = %grab.team, target.host = %host, size_bytes, execution_ms,
            total_ms = finished_at.since(grab.created_at).as_millis(), blocked_requests = metadata.blocked_requests,
            "a grab is done"
        ),
        State::Failed { failure, .. } => tracing::info!(
            grab.id = %grab.id, team.id = %grab.team, target.host = %host, code = failure.reason.code().as_str(),
            error.message = failure.message, "a grab failed"
        ),
        State::Pending | State::Processing => {}
    }
}
