//! How a webhook stands, and what was sent to it, in people's words.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::webhooks::{Delivery, DeliveryStatus, Disabled, Endpoint, Event, Events, NoAnswer, message_id};

use crate::apps::list::environment_name;
use crate::grabs::view::{seconds, title};
use crate::moment::Moment;
use crate::problem::wait;
use crate::team::AtTeam;

/// A webhook as a page shows it.
pub(super) struct Hook {
    pub(super) id: String,
    /// Its page; others are below it.
    pub(super) path: String,
    pub(super) url: String,
    /// The address without its scheme, shortened.
    pub(super) title: String,
    pub(super) description: String,
    pub(super) environment: &'static str,
    /// What it hears of.
    pub(super) events: String,
    pub(super) is_on: bool,
    /// What the style sheet calls how it stands.
    pub(super) class: &'static str,
    pub(super) sentence: &'static str,
    pub(super) created: Moment,
}

/// One message to a webhook as a page shows it.
pub(super) struct Sent {
    pub(super) path: String,
    pub(super) event: &'static str,
    pub(super) event_name: &'static str,
    /// What the style sheet calls how it stands.
    pub(super) class: &'static str,
    pub(super) status: &'static str,
    /// What it stands at.
    pub(super) answer: String,
    /// What the last attempt that ended came to.
    pub(super) ended: Option<String>,
    pub(super) attempt: u32,
    pub(super) attempts: String,
    /// When the last attempt was made.
    pub(super) attempted: Option<Moment>,
    /// The same, or since when there is one to make.
    pub(super) at: Moment,
    pub(super) next: Option<Next>,
    pub(super) message_id: String,
    pub(super) is_pending: bool,
}

/// An attempt that will be made.
pub(super) struct Next {
    /// `in 5 minutes`
    pub(super) wait: String,
    pub(super) at: Moment,
}

impl Hook {
    pub(super) fn of(webhook: &Endpoint, at: &AtTeam) -> Self {
        let Endpoint { id, team: _, environment, url, events, description, disabled, created_at } = webhook;
        let (class, sentence) = stands(*environment, *disabled);
        Self {
            id: id.to_string(),
            path: at.webhook_path(*id, ""),
            url: url.to_string(),
            title: title(url.as_str()),
            description: description.clone(),
            environment: environment_name(*environment),
            events: events_said(events),
            is_on: disabled.is_none(),
            class,
            sentence,
            created: (*created_at).into(),
        }
    }

    /// Whether it is on, as a word.
    pub(super) const fn status(&self) -> &'static str {
        if self.is_on { "On" } else { "Off" }
    }
}

const fn stands(environment: Environment, disabled: Option<Disabled>) -> (&'static str, &'static str) {
    match (disabled, environment) {
        (None, Environment::Live) => {
            ("done", "It is told when live captures end that were made here, or asynchronously through the API.")
        }
        (None, Environment::Test) => ("done", "Test captures tell nobody. Only test messages are sent here."),
        (Some(Disabled::Requested), _) => ("deleted", "It was switched off, and nothing is sent."),
        (Some(Disabled::Gone), _) => {
            ("failed", "Your receiver answered 410, which says that it wants no more, so nothing is sent.")
        }
        (Some(Disabled::Failing), _) => {
            ("failed", "For five days no message has arrived at your receiver, so nothing is sent.")
        }
    }
}

impl Sent {
    pub(super) fn of(delivery: &Delivery, webhook: &Endpoint, at: &AtTeam, now: Timestamp) -> Self {
        let Delivery { id, event, attempt, status, attempted_at, next_attempt_at, created_at, .. } = delivery;
        let (class, said) = match status {
            DeliveryStatus::Pending => ("open", "Sending"),
            DeliveryStatus::Delivered => ("done", "Delivered"),
            DeliveryStatus::Failed => ("failed", "Failed so far"),
            DeliveryStatus::Exhausted => ("failed", "Given up"),
        };
        let is_pending = *status == DeliveryStatus::Pending;
        let next = next_attempt_at.filter(|_| !is_pending);
        Self {
            path: at.delivery_path(webhook.id, *id),
            event: event.as_str(),
            event_name: event_name(*event),
            class,
            status: said,
            answer: answer(delivery),
            ended: ended(delivery),
            attempt: *attempt,
            attempts: match attempt {
                1 => "1 attempt".to_owned(),
                _ => format!("{attempt} attempts"),
            },
            attempted: attempted_at.map(Moment::from),
            at: attempted_at.unwrap_or(*created_at).into(),
            next: next.map(|next| Next { wait: in_words(next, now), at: next.into() }),
            message_id: message_id(*id),
            is_pending,
        }
    }
}

/// What an event is about.
pub(super) const fn event_name(event: Event) -> &'static str {
    match event {
        Event::GrabDone => "A capture is done",
        Event::GrabFailed => "A capture has failed",
        Event::Test => "A test message",
    }
}

fn events_said(events: &Events) -> String {
    match events.words().as_slice() {
        [Events::ALL] => "everything".to_owned(),
        words => words.join(", "),
    }
}

/// What it stands at.
fn answer(delivery: &Delivery) -> String {
    let Delivery { attempt, status, .. } = delivery;
    match (status, attempt) {
        (DeliveryStatus::Pending, 0) => "Not sent yet".to_owned(),
        (DeliveryStatus::Pending, _) => "No answer yet".to_owned(),
        (DeliveryStatus::Delivered | DeliveryStatus::Failed | DeliveryStatus::Exhausted, _) => {
            ended(delivery).unwrap_or_else(|| "Cancelled before it was answered".to_owned())
        }
    }
}

/// What the last attempt that ended came to.
fn ended(delivery: &Delivery) -> Option<String> {
    let Delivery { status_code, no_answer, took, .. } = delivery;
    let after = took.map(|took| format!(" after {}", seconds(took))).unwrap_or_default();
    if let Some(code) = status_code {
        return Some(format!("Answered {code}{after}"));
    }
    no_answer.map(|why| match why {
        NoAnswer::Refused => "Not sent: the address is not public".to_owned(),
        NoAnswer::Unresolved => "Not sent: the host has no address".to_owned(),
        NoAnswer::Unreachable => "Not sent: nobody takes connections there".to_owned(),
        NoAnswer::Tls => "Not sent: TLS failed".to_owned(),
        NoAnswer::Http => format!("Broken off{after}"),
        NoAnswer::TimedOut => format!("No answer{after}"),
    })
}

fn in_words(next: Timestamp, now: Timestamp) -> String {
    match next.since(now).as_millis().div_ceil(1000) {
        0 => "now".to_owned(),
        seconds => format!("in {}", wait(u64::try_from(seconds).unwrap_or(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grabd_domain::ids::DeliveryId;

    use super::*;

    fn delivery(status: DeliveryStatus, attempt: u32, ended: Option<Result<u16, NoAnswer>>) -> Delivery {
        Delivery {
            id: DeliveryId("01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap()),
            event: Event::GrabDone,
            attempt,
            status,
            status_code: ended.and_then(Result::ok),
            no_answer: ended.and_then(Result::err),
            took: ended.map(|_| Duration::from_millis(1250)),
            attempted_at: ended.map(|_| Timestamp::from_ms(0)),
            next_attempt_at: None,
            created_at: Timestamp::from_ms(0),
        }
    }

    #[test]
    fn every_end_of_an_attempt_is_said() {
        use DeliveryStatus::{Delivered, Exhausted, Failed, Pending};
        for (status, attempt, ended, said) in [
            (Pending, 0, None, "Not sent yet"),
            (Pending, 1, None, "No answer yet"),
            (Pending, 2, Some(Ok(500)), "No answer yet"),
            (Delivered, 1, Some(Ok(204)), "Answered 204 after 1.2 s"),
            (Failed, 1, Some(Err(NoAnswer::Refused)), "Not sent: the address is not public"),
            (Failed, 1, Some(Err(NoAnswer::Unresolved)), "Not sent: the host has no address"),
            (Failed, 1, Some(Err(NoAnswer::Unreachable)), "Not sent: nobody takes connections there"),
            (Failed, 1, Some(Err(NoAnswer::Tls)), "Not sent: TLS failed"),
            (Failed, 1, Some(Err(NoAnswer::Http)), "Broken off after 1.2 s"),
            (Exhausted, 10, Some(Err(NoAnswer::TimedOut)), "No answer after 1.2 s"),
            (Exhausted, 0, None, "Cancelled before it was answered"),
        ] {
            assert_eq!(answer(&delivery(status, attempt, ended)), said, "{status:?}");
        }
        let again = delivery(Pending, 2, Some(Ok(500)));
        assert_eq!(ended(&again).as_deref(), Some("Answered 500 after 1.2 s"));
    }

    #[test]
    fn what_comes_next_is_said_from_now_on() {
        let now = Timestamp::from_ms(10_000);
        for (ms, said) in [(9_000, "now"), (10_000, "now"), (10_001, "in 1 second"), (310_000, "in 5 minutes")] {
            assert_eq!(in_words(Timestamp::from_ms(ms), now), said);
        }
    }
}
