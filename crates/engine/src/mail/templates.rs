//! Message texts: why it was sent, one link on its own line, how long it is valid, and what to do if it was not
//! requested.

use grabd_domain::accounts::{Email, RESET_LIFE, VERIFICATION_LIFE};
use grabd_domain::monitor::{ALERT_AFTER_FAILURES, Change, ElementChange, Run};
use grabd_domain::teams::{INVITATION_LIFE, TeamName};
use grabd_domain::webhooks::Event;
use grabd_store::low_balance::{LowBalance, LowBalanceReason};

use super::queue::MailMessage;

/// An invitation to a team. The team name is untrusted text, so it is quoted, and left out if it is unfit.
pub(crate) fn invitation(to: Email, by: &Email, team: Option<&TeamName>, host: &str, link: &str) -> MailMessage {
    let days = INVITATION_LIFE.as_secs() / (24 * 60 * 60);
    let team = team.map_or_else(|| "a team".to_owned(), |team| format!("the team \"{team}\""));
    let text = format!(
        "{by} has invited you to join {team} on grabd at {host}.\n\n\
         To accept the invitation, open this link. It expires after {days} days and works once:\n\n{link}\n\n\
         If you do not know {by}, you can ignore this e-mail.\n"
    );
    MailMessage { to, subject: format!("Invitation to grabd at {host}"), text }
}

/// A link to verify the address of an account.
pub(crate) fn verification(to: Email, host: &str, link: &str) -> MailMessage {
    let hours = VERIFICATION_LIFE.as_secs() / (60 * 60);
    let text = format!(
        "An account was created for {to} on grabd at {host}.\n\n\
         To verify your e-mail address, open this link. It expires after {hours} hours and works once:\n\n\
         {link}\n\n\
         If you did not create the account, you can ignore this e-mail: the account stays unverified.\n"
    );
    MailMessage { to, subject: format!("Verify your e-mail address for grabd at {host}"), text }
}

/// A password reset link.
pub(crate) fn reset(to: Email, host: &str, link: &str) -> MailMessage {
    let minutes = RESET_LIFE.as_secs() / 60;
    let text = format!(
        "A password reset was requested for {to} on grabd at {host}.\n\n\
         To set a new password, open this link. It expires after {minutes} minutes and works once:\n\n{link}\n\n\
         If you did not request this, you can ignore this e-mail. Your password has not been changed.\n"
    );
    MailMessage { to, subject: format!("Reset your password for grabd at {host}"), text }
}

/// A notice that the password was changed.
pub(crate) fn password_changed(to: Email, host: &str) -> MailMessage {
    let text = format!(
        "The password of {to} on grabd at {host} was changed.\n\n\
         If you did not change it, choose \"Forgot your password?\" on the sign-in page and contact your administrator.\n"
    );
    MailMessage { to, subject: format!("Your password for grabd at {host} was changed"), text }
}

/// An alert about a balance. The team name is untrusted text, so it is quoted, and left out if it is unfit.
pub(crate) fn low_balance(to: Email, alert: &LowBalance, host: &str, link: &str) -> MailMessage {
    let LowBalance { team: _, team_name, credits, below, reason, recipients: _ } = alert;
    let team =
        TeamName::parse(team_name).map_or_else(|_| "your team".to_owned(), |name| format!("the team \"{name}\""));
    let noun = if *credits == 1 { "credit" } else { "credits" };
    let limit = match reason {
        LowBalanceReason::Threshold => format!("below the {below} that the team's owners have chosen for this alert"),
        LowBalanceReason::Percent(0) => "so that none is left".to_owned(),
        LowBalanceReason::Percent(percent) => format!("at most {percent} % of those that were added"),
    };
    let text = format!(
        "The balance of {team} on grabd at {host} has fallen to {credits} {noun}, {limit}.\n\n\
         Without credits, live captures are refused. To add credits, or to change the alert, open this link:\n\n{link}\n\n\
         You get this e-mail because you are an owner of the team, or were chosen to get its alerts. It is not repeated \
         until the balance has been higher again.\n"
    );
    MailMessage { to, subject: format!("Low balance: {credits} {noun} left for grabd at {host}"), text }
}

/// The most changes of the text, and of the elements, in a mail.
const MAIL_CHANGES: usize = 10;

/// What the members of a team are told about a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MonitorMail {
    /// The page has changed.
    Changed {
        /// How much of the image differs, if that is a change.
        share: Option<String>,
        /// Whether the HTTP status differs.
        has_other_status: bool,
        /// The first lines of the text that have changed.
        lines: Vec<String>,
        /// The first elements that have changed.
        elements: Vec<String>,
    },
    /// The last runs have failed.
    Failed {
        /// Why the last one did.
        reason: Option<String>,
    },
    /// A run is done after them.
    Recovered,
    /// The team has no credits.
    OutOfCredits,
}

impl MonitorMail {
    /// The mail about an event of a run. `None` for events that are not about monitors.
    pub(crate) fn of(event: Event, run: &Run) -> Option<Self> {
        match event {
            Event::MonitorChanged => {
                let ppm = run.difference_ppm.filter(|_| run.changes.contains(&Change::Image));
                let has_other_status = run.changes.contains(&Change::Status);
                let (lines, elements) = (changed_lines(run), changed_elements(run));
                Some(Self::Changed { share: ppm.map(share), has_other_status, lines, elements })
            }
            Event::MonitorFailed => {
                let reason = run.error.as_ref().map(|error| error.message.replace(char::is_control, " "));
                Some(Self::Failed { reason })
            }
            Event::MonitorRecovered => Some(Self::Recovered),
            Event::GrabDone
            | Event::GrabFailed
            | Event::GrabChanged
            | Event::CreditsLow
            | Event::SiteFinished
            | Event::Test => None,
        }
    }
}

/// A part of an image, rounded down, but never to nothing.
fn share(ppm: u32) -> String {
    match ppm {
        0..1000 => "less than 0.1 %".to_owned(),
        1000.. => format!("{}.{} %", ppm / 10_000, ppm % 10_000 / 1000),
    }
}

/// The first changed lines of the text, as a mail shows them, with an ellipsis if there are more.
fn changed_lines(run: &Run) -> Vec<String> {
    let line =
        |sign: char, text: Option<&str>| text.map(|text| format!("{sign} {}", text.replace(char::is_control, " ")));
    let changes = run.text_changes.iter().take(MAIL_CHANGES);
    let lines =
        changes.flat_map(|change| [line('-', change.before.as_deref()), line('+', change.after.as_deref())]).flatten();
    let has_more = run.text_changes.len() > MAIL_CHANGES;
    lines.chain(has_more.then(|| "…".to_owned())).collect()
}

/// The first changed elements, as a mail shows them, with an ellipsis if there are more.
fn changed_elements(run: &Run) -> Vec<String> {
    let line = |ElementChange { kind, role, name, before, after }: &ElementChange| {
        let change = before.as_ref().zip(after.as_ref());
        let change = change.map(|(before, after)| format!(", was \"{before}\", now \"{after}\"")).unwrap_or_default();
        format!("{}: {role} \"{name}\"{change}", kind.as_str())
    };
    let lines = run.element_changes.iter().take(MAIL_CHANGES).map(line);
    let has_more = run.element_changes.len() > MAIL_CHANGES;
    lines.chain(has_more.then(|| "…".to_owned())).collect()
}

/// An alert of a monitor. Its name is quoted, and that of the team is left out if it is unfit.
pub(crate) fn monitor(
    to: Email,
    mail: &MonitorMail,
    name: &str,
    team_name: &str,
    host: &str,
    link: &str,
) -> MailMessage {
    let team =
        TeamName::parse(team_name).map_or_else(|_| "your team".to_owned(), |name| format!("the team \"{name}\""));
    let (subject, fact) = match mail {
        MonitorMail::Changed { share, has_other_status, lines, elements } => {
            let image = share.as_deref().map(|share| format!("{share} of its image differs"));
            let status = has_other_status.then(|| "its HTTP status differs".to_owned());
            let facts: Vec<String> = image.into_iter().chain(status).collect();
            let what = if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", and ")) };
            let lines = match lines.is_empty() {
                true => String::new(),
                false => format!("\n\nLines of its text:\n\n{}", lines.join("\n")),
            };
            let elements = match elements.is_empty() {
                true => String::new(),
                false => format!("\n\nElements:\n\n{}", elements.join("\n")),
            };
            ("Page changed", format!("The page has changed{what}.{lines}{elements}"))
        }
        MonitorMail::Failed { reason } => {
            let reason = reason.as_deref().map(|reason| format!(" The last one: {reason}")).unwrap_or_default();
            ("Runs fail", format!("The last {ALERT_AFTER_FAILURES} runs have failed.{reason}"))
        }
        MonitorMail::Recovered => ("Runs work again", "A run is done again after failed ones.".to_owned()),
        MonitorMail::OutOfCredits => (
            "No credits left",
            "There is no credit for this run. All monitors of the team wait until it has credits, and continue by \
             themselves."
                .to_owned(),
        ),
    };
    let text = format!(
        "Monitor \"{name}\" of {team} on grabd at {host}:\n\n{fact}\n\n\
         To see its captures, or to change how it sends alerts, open this link:\n\n{link}\n\n\
         You get this e-mail because you are an owner of the team, or were chosen to get its alerts.\n"
    );
    MailMessage { to, subject: format!("{subject}: monitor \"{name}\" for grabd at {host}"), text }
}

/// The mail about a site job that has ended because its team has no credits. The name of the team is left out if it is unfit.
pub(crate) fn site_out_of_credits(to: Email, name: &str, team_name: &str, host: &str, link: &str) -> MailMessage {
    let team =
        TeamName::parse(team_name).map_or_else(|_| "your team".to_owned(), |name| format!("the team \"{name}\""));
    let text = format!(
        "Site job \"{name}\" of {team} on grabd at {host}:\n\n\
         The team has no credits left, so that the job has ended before all its pages were captured. Start it again once \
         there are credits.\n\n\
         To see what was captured, open this link:\n\n{link}\n\n\
         You get this e-mail because you are an owner of the team, or were chosen to get its alerts.\n"
    );
    MailMessage { to, subject: format!("No credits left: site job \"{name}\" for grabd at {host}"), text }
}

/// What a user is told about their second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondFactorEvent {
    /// It was turned on.
    On,
    /// It was turned off.
    Off,
    /// An authenticator app was added, or replaced the former one.
    AppSet,
    /// A passkey was added.
    PasskeyAdded,
    /// A passkey was removed.
    PasskeyRemoved,
    /// All recovery codes were replaced.
    NewRecoveryCodes,
    /// A recovery code was used to sign in.
    RecoveryCodeUsed,
    /// Somebody who has the password entered so many wrong codes that no more are accepted for a while.
    WrongCodes,
}

/// A notice about a second factor.
pub(crate) fn second_factor(to: Email, host: &str, event: SecondFactorEvent) -> MailMessage {
    let (subject, fact) = match event {
        SecondFactorEvent::On => ("The second factor is on", "The second factor for sign-in was turned on."),
        SecondFactorEvent::Off => ("The second factor is off", "The second factor for sign-in was turned off."),
        SecondFactorEvent::AppSet => {
            ("An authenticator app was set up", "An authenticator app was set up. Its codes are accepted for sign-in.")
        }
        SecondFactorEvent::PasskeyAdded => {
            ("A passkey was added", "A passkey was added. It can sign in without the password.")
        }
        SecondFactorEvent::PasskeyRemoved => {
            ("A passkey was removed", "A passkey was removed. It can no longer sign in.")
        }
        SecondFactorEvent::NewRecoveryCodes => {
            ("New recovery codes", "New recovery codes were created. The former ones no longer work.")
        }
        SecondFactorEvent::RecoveryCodeUsed => {
            ("A recovery code was used", "A recovery code was used to sign in. It does not work again.")
        }
        SecondFactorEvent::WrongCodes => {
            ("Wrong codes", "Somebody entered the correct password and then several wrong codes. Nobody was signed in.")
        }
    };
    let text = format!(
        "{fact}\n\n\
         This message is about the account {to} on grabd at {host}.\n\n\
         If this was not you, somebody knows your password: choose \"Forgot your password?\" on the sign-in page and \
         contact your administrator.\n"
    );
    MailMessage { to, subject: format!("{subject} for grabd at {host}"), text }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::ids::{MonitorId, RunId};
    use grabd_domain::monitor::{RunOutcome, TextChange};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn mail_about_a_change_says_what_has_changed() {
        let mail = |difference_ppm, changes: &[Change]| {
            let run = Run {
                id: RunId(Uuid::nil()),
                monitor: MonitorId(Uuid::nil()),
                due_at: Timestamp::from_ms(0),
                outcome: RunOutcome::Changed,
                grab: None,
                compared_to: None,
                difference_ppm,
                changes: changes.to_vec(),
                is_alerted: true,
                finished_at: None,
                error: None,
                text_changes: vec![TextChange { before: Some("9 €".into()), after: Some("8 €".into()) }],
                element_changes: vec![ElementChange::changed("button", "Order", "Buy", "Order")],
            };
            MonitorMail::of(Event::MonitorChanged, &run)
        };
        let changed = |share: Option<&str>, has_other_status| {
            let lines = vec!["- 9 €".to_owned(), "+ 8 €".to_owned()];
            let elements = vec!["changed: button \"Order\", was \"Buy\", now \"Order\"".to_owned()];
            Some(MonitorMail::Changed { share: share.map(str::to_owned), has_other_status, lines, elements })
        };
        assert_eq!(mail(Some(21_999), &[Change::Image]), changed(Some("2.1 %"), false));
        assert_eq!(mail(Some(7), &[Change::Image]), changed(Some("less than 0.1 %"), false));
        assert_eq!(mail(Some(7), &[Change::Status]), changed(None, true), "the image counts as the same");
        assert_eq!(mail(None, &[Change::Text]), changed(None, false));

        let text = |share: Option<&str>, has_other_status| {
            let mail = MonitorMail::Changed {
                share: share.map(str::to_owned),
                has_other_status,
                lines: Vec::new(),
                elements: Vec::new(),
            };
            let to = Email::parse("user@example.com").unwrap();
            monitor(to, &mail, "Prices", "team", "grabd.example", "https://grabd.example/").text
        };
        for (share, has_other_status, sentence) in [
            (None, false, "The page has changed.\n"),
            (Some("2.1 %"), false, "The page has changed: 2.1 % of its image differs.\n"),
            (None, true, "The page has changed: its HTTP status differs.\n"),
            (Some("2.1 %"), true, "The page has changed: 2.1 % of its image differs, and its HTTP status differs.\n"),
        ] {
            assert!(text(share, has_other_status).contains(sentence), "{sentence}");
        }
    }
}
