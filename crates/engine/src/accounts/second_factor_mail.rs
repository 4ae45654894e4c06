//! Notices about the second factor.

use grabd_domain::accounts::Email;

use crate::mail::templates;
use crate::service::Core;

pub(super) use crate::mail::templates::SecondFactorEvent;

/// Best effort: nothing is sent when mail is not configured or the queue is full.
pub(super) fn notify(core: &Core, email: &Email, event: SecondFactorEvent) {
    if let Some(mailer) = &core.accounts.mailer {
        let _ = mailer.enqueue(templates::second_factor(email.clone(), &core.host(), event));
    }
}
