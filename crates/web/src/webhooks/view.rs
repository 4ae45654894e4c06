//! Webhooks and deliveries for display.

use std::collections::HashMap;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::GrantId;
use grabd_domain::webhooks::{
    Creator, Delivery, DeliveryError, DeliveryStatus, DisabledReason, Endpoint, Event, Events, message_id,
};

use crate::environments::environment_name;
use crate::grabs::view::{seconds, title};
use crate::team::TeamContext;
use crate::time_format::{Moment, time_until};

/// A webhook as a page shows it.
pub(super) struct WebhookView {
    pub(super) id: String,
    /// The path of its page.
    pub(super) path: String,
    pub(super) url: String,
    /// The URL without its scheme, shortened.
    pub(super) title: String,
    pub(super) description: String,
    pub(super) environment: &'static str,
    pub(super) is_live: bool,
    /// The events that it receives.
    pub(super) events: String,
    pub(super) is_on: bool,
    /// The CSS class of the status.
    pub(super) class: &'static str,
    pub(super) sentence: &'static str,
    pub(super) created: Moment,
}

/// Who created a webhook, as a page shows it.
pub(super) enum CreatorView {
    /// An app, by the name that it has chosen.
    App(String),
    /// Somebody with an API key.
    Key,
    /// A user on these pages.
    User,
    /// It was not recorded.
    Unknown,
}

impl CreatorView {
    /// `names` are those of apps.
    pub(super) fn of(webhook: &Endpoint, names: &HashMap<GrantId, String>) -> Self {
        match webhook.creator {
            Some(Creator::App(grant)) => Self::App(names.get(&grant).cloned().unwrap_or_default()),
            Some(Creator::Key) => Self::Key,
            Some(Creator::User) => Self::User,
            None => Self::Unknown,
        }
    }

    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

/// A delivery as a page shows it.
pub(super) struct DeliveryView {
    pub(super) path: String,
    pub(super) event: &'static str,
    pub(super) event_name: &'static str,
    /// The CSS class of the status.
    pub(super) class: &'static str,
    pub(super) status: &'static str,
    /// The current result.
    pub(super) answer: String,
    /// The result of the last completed attempt.
    pub(super) ended: Option<String>,
    pub(super) attempt: u32,
    pub(super) attempts: String,
    /// The time of the last attempt.
    pub(super) attempted: Option<Moment>,
    /// The time of the last attempt, or of the creation.
    pub(super) at: Moment,
    pub(super) next: Option<NextAttempt>,
    pub(super) message_id: String,
    pub(super) is_pending: bool,
}

/// The next attempt.
pub(super) struct NextAttempt {
    /// `in 5 minutes`
    pub(super) wait: String,
    pub(super) at: Moment,
}

impl WebhookView {
    pub(super) fn of(webhook: &Endpoint, at: &TeamContext) -> Self {
        let Endpoint { id, team: _, environment, url, events, description, disabled, created_at, creator: _ } = webhook;
        let (class, sentence) = status_summary(*environment, *disabled);
        Self {
            id: id.to_string(),
            path: at.webhook_path(*id, ""),
            url: url.to_string(),
            title: title(url.as_str()),
            description: description.clone(),
            environment: environment_name(*environment),
            is_live: *environment == Environment::Live,
            events: events_summary(events),
            is_on: disabled.is_none(),
            class,
            sentence,
            created: (*created_at).into(),
        }
    }

    /// The display name of the status.
    pub(super) const fn status(&self) -> &'static str {
        if self.is_on { "On" } else { "Off" }
    }
}

const fn status_summary(environment: Environment, disabled: Option<DisabledReason>) -> (&'static str, &'static str) {
    match (disabled, environment) {
        (None, Environment::Live) => {
            ("done", "Receives events of asynchronous live captures, and of live captures made in the web app.")
        }
        (None, Environment::Test) => ("done", "Test captures send no events. Use it to receive test messages."),
        (Some(DisabledReason::Requested), _) => ("deleted", "Disabled. No messages are sent."),
        (Some(DisabledReason::Gone), _) => ("failed", "Disabled: your endpoint answered 410 Gone."),
        (Some(DisabledReason::Failing), _) => ("failed", "Disabled: deliveries have failed for five days."),
    }
}

impl DeliveryView {
    pub(super) fn of(delivery: &Delivery, webhook: &Endpoint, at: &TeamContext, now: Timestamp) -> Self {
        let Delivery { id, event, attempt, status, attempted_at, next_attempt_at, created_at, .. } = delivery;
        let (class, label) = match status {
            DeliveryStatus::Pending => ("open", "Sending"),
            DeliveryStatus::Delivered => ("done", "Delivered"),
            DeliveryStatus::Failed => ("failed", "Failed, will retry"),
            DeliveryStatus::Exhausted => ("failed", "Failed"),
        };
        let is_pending = *status == DeliveryStatus::Pending;
        let next = next_attempt_at.filter(|_| !is_pending);
        Self {
            path: at.delivery_path(webhook.id, *id),
            event: event.as_str(),
            event_name: event_name(*event),
            class,
            status: label,
            answer: result_text(delivery),
            ended: ended(delivery),
            attempt: *attempt,
            attempts: match attempt {
                1 => "1 attempt".to_owned(),
                _ => format!("{attempt} attempts"),
            },
            attempted: attempted_at.map(Moment::from),
            at: attempted_at.unwrap_or(*created_at).into(),
            next: next.map(|next| NextAttempt { wait: time_until(next, now), at: next.into() }),
            message_id: message_id(*id),
            is_pending,
        }
    }
}

/// The display name of an event.
pub(super) const fn event_name(event: Event) -> &'static str {
    match event {
        Event::GrabDone => "Capture done",
        Event::GrabFailed => "Capture failed",
        Event::GrabChanged => "Page changed",
        Event::CreditsLow => "Low balance",
        Event::MonitorChanged => "Monitor: page changed",
        Event::MonitorFailed => "Monitor: runs fail",
        Event::MonitorRecovered => "Monitor: runs work again",
        Event::SiteFinished => "Site job ended",
        Event::Test => "Test message",
    }
}

fn events_summary(events: &Events) -> String {
    match events.words().as_slice() {
        [Events::ALL] => "all".to_owned(),
        words => words.join(", "),
    }
}

/// The current result.
fn result_text(delivery: &Delivery) -> String {
    let Delivery { attempt, status, .. } = delivery;
    match (status, attempt) {
        (DeliveryStatus::Pending, 0) => "Not sent yet".to_owned(),
        (DeliveryStatus::Pending, _) => "Waiting for a response".to_owned(),
        (DeliveryStatus::Delivered | DeliveryStatus::Failed | DeliveryStatus::Exhausted, _) => {
            ended(delivery).unwrap_or_else(|| "Cancelled".to_owned())
        }
    }
}

/// The result of the last completed attempt.
fn ended(delivery: &Delivery) -> Option<String> {
    let Delivery { status_code, error, took, .. } = delivery;
    let after = took.map(|took| format!(" after {}", seconds(took))).unwrap_or_default();
    if let Some(code) = status_code {
        return Some(format!("Answered {code}{after}"));
    }
    error.map(|reason| match reason {
        DeliveryError::Refused => "Not sent: the address is not public".to_owned(),
        DeliveryError::Unresolved => "Not sent: the host name could not be resolved".to_owned(),
        DeliveryError::Unreachable => "Not sent: the connection was refused".to_owned(),
        DeliveryError::Tls => "Not sent: TLS failed".to_owned(),
        DeliveryError::Http => format!("Connection closed{after}"),
        DeliveryError::TimedOut => format!("No response{after}"),
        DeliveryError::TooManyOpen => "Not sent: too many messages of the account were waiting".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grabd_domain::ids::DeliveryId;

    use super::*;

    fn delivery(status: DeliveryStatus, attempt: u32, ended: Option<Result<u16, DeliveryError>>) -> Delivery {
        Delivery {
            id: DeliveryId("01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap()),
            event: Event::GrabDone,
            attempt,
            status,
            status_code: ended.and_then(Result::ok),
            error: ended.and_then(Result::err),
            took: ended.map(|_| Duration::from_millis(1250)),
            attempted_at: ended.map(|_| Timestamp::from_ms(0)),
            next_attempt_at: None,
            created_at: Timestamp::from_ms(0),
        }
    }

    #[test]
    fn every_attempt_result_has_a_text() {
        use DeliveryStatus::{Delivered, Exhausted, Failed, Pending};
        for (status, attempt, ended, expected) in [
            (Pending, 0, None, "Not sent yet"),
            (Pending, 1, None, "Waiting for a response"),
            (Pending, 2, Some(Ok(500)), "Waiting for a response"),
            (Delivered, 1, Some(Ok(204)), "Answered 204 after 1.2 s"),
            (Failed, 1, Some(Err(DeliveryError::Refused)), "Not sent: the address is not public"),
            (Failed, 1, Some(Err(DeliveryError::Unresolved)), "Not sent: the host name could not be resolved"),
            (Failed, 1, Some(Err(DeliveryError::Unreachable)), "Not sent: the connection was refused"),
            (Failed, 1, Some(Err(DeliveryError::Tls)), "Not sent: TLS failed"),
            (Failed, 1, Some(Err(DeliveryError::Http)), "Connection closed after 1.2 s"),
            (Exhausted, 10, Some(Err(DeliveryError::TimedOut)), "No response after 1.2 s"),
            (
                Exhausted,
                0,
                Some(Err(DeliveryError::TooManyOpen)),
                "Not sent: too many messages of the account were waiting",
            ),
            (Exhausted, 0, None, "Cancelled"),
        ] {
            assert_eq!(result_text(&delivery(status, attempt, ended)), expected, "{status:?}");
        }
        let again = delivery(Pending, 2, Some(Ok(500)));
        assert_eq!(ended(&again).as_deref(), Some("Answered 500 after 1.2 s"));
    }
}
