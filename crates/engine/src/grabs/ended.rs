//! What follows the end of a grab, whoever ended it: a line, a count, and word to those who wait.

use grabd_domain::grabs::{Grab, State};

use crate::core::Core;

/// Tells everybody who has to hear of an end that is in the store.
pub(crate) fn ended(core: &Core, grab: Grab) {
    log(&grab);
    core.metrics.ended(&grab);
    core.watchers.publish(grab);
    core.webhooks.ring();
}

fn log(grab: &Grab) {
    let host = grab.spec.url.host();
    match &grab.state {
        State::Done { size_bytes, execution_ms, facts, finished_at, .. } => tracing::info!(
            grab.id = %grab.id, team.id = %grab.team, target.host = %host, size_bytes, execution_ms,
            total_ms = finished_at.since(grab.created_at).as_millis(), blocked_requests = facts.blocked_requests,
            "a grab is done"
        ),
        State::Failed { failure, .. } => tracing::info!(
            grab.id = %grab.id, team.id = %grab.team, target.host = %host, code = failure.reason.code().as_str(),
            message = failure.message, "a grab failed"
        ),
        State::Pending | State::Processing => {}
    }
}
