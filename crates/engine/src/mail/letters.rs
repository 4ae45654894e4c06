//! What letters say: why one got it, one link on a line of its own, how long it counts, and what to do if one did not ask.

use grabd_domain::accounts::{Email, RESET_LIFE};
use grabd_domain::teams::INVITATION_LIFE;

use super::Letter;

/// To whoever is asked into a team. The team's name is its owner's own words, so it stands in quotes and never alone.
pub(crate) fn invitation(to: Email, by: &Email, team: &str, host: &str, link: &str) -> Letter {
    let days = INVITATION_LIFE.as_secs() / (24 * 60 * 60);
    let text = format!(
        "{by} invites you into the team \"{team}\" on grabd at {host}.\n\n\
         To come in, follow this link. It counts for {days} days and once:\n\n{link}\n\n\
         If you do not know {by}, you need do nothing: nothing happens without you.\n"
    );
    Letter { to, subject: format!("An invitation to grabd at {host}"), text }
}

/// To whoever forgot their password.
pub(crate) fn reset(to: Email, host: &str, link: &str) -> Letter {
    let minutes = RESET_LIFE.as_secs() / 60;
    let text = format!(
        "Somebody, probably you, asked to choose a new password for {to} on grabd at {host}.\n\n\
         To choose one, follow this link. It counts for {minutes} minutes and once:\n\n{link}\n\n\
         If it was not you, you need do nothing: your password stays as it is.\n"
    );
    Letter { to, subject: format!("A new password for grabd at {host}"), text }
}

/// To whoever's password was changed, so that they notice if it was not them.
pub(crate) fn password_changed(to: Email, host: &str) -> Letter {
    let text = format!(
        "The password of {to} on grabd at {host} was changed a moment ago.\n\n\
         If it was not you, choose \"Forgotten your password?\" where you sign in, and tell whoever runs that grabd.\n"
    );
    Letter { to, subject: format!("Your password for grabd at {host} was changed"), text }
}
