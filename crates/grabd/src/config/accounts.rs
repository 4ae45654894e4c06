//! Section `accounts`.

use serde::Deserialize;

use super::{Mail, Problems};

/// More is a mistake: everybody who signs up gets them.
const MAX_TRIAL_CREDITS: u32 = 100_000;

/// Section `accounts`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Accounts {
    pub sign_up: bool,
    pub trial_credits: u32,
}

impl Accounts {
    /// Trial credits need the mail server.
    pub(super) fn validate(&self, mail: &Mail, problems: &mut Problems) {
        let trial_credits = self.trial_credits;
        if trial_credits > 0 && mail.smtp_url.expose().is_empty() {
            let allowed = "0 without mail.smtp_url, since e-mail addresses are not verified then";
            problems.add("accounts.trial_credits", &trial_credits.to_string(), allowed);
        } else if trial_credits > MAX_TRIAL_CREDITS {
            let allowed = format!("at most {MAX_TRIAL_CREDITS}");
            problems.add("accounts.trial_credits", &trial_credits.to_string(), &allowed);
        }
    }
}
