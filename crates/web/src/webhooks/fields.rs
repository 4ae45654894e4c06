//! What is filled in about a webhook: how it is shown, read, and complained about.

use grabd_domain::Fault;
use grabd_domain::faults;
use grabd_domain::limits::URL_BYTES;
use grabd_domain::webhooks::{DESCRIPTION_CHARS, Endpoint, Event, Events, MAX_ENDPOINTS, Request};

use super::view::event_name;
use crate::form::{Complaint, Form};
use crate::grabs::options::{ENVIRONMENT, Text, with_scheme};

const URL: &str = "url";
const EVENTS: &str = "events";
const DESCRIPTION: &str = "description";

/// Every field that can be changed later, with what stands in it.
pub(super) struct Fields {
    pub(super) url: Text,
    pub(super) events: Vec<Choice>,
    pub(super) events_error: Option<String>,
    pub(super) description: Text,
}

/// A kind of event to choose.
pub(super) struct Choice {
    pub(super) word: &'static str,
    pub(super) name: &'static str,
    pub(super) is_chosen: bool,
}

impl Fields {
    /// Those of a webhook that is yet to be: it hears of everything.
    pub(super) fn empty() -> Self {
        Self::of(&Form::from_iter([(EVENTS, Events::ALL)]), &[])
    }

    /// Those of a webhook as it is.
    pub(super) fn of_webhook(webhook: &Endpoint) -> Self {
        let mut pairs = vec![(URL, webhook.url.as_str()), (DESCRIPTION, &*webhook.description)];
        pairs.extend(webhook.events.words().into_iter().map(|word| (EVENTS, word)));
        Self::of(&Form::from_iter(pairs), &[])
    }

    /// As they were sent, with the complaints about them.
    pub(super) fn of(sent: &Form, complaints: &[Complaint]) -> Self {
        let error = |name| {
            let own = complaints.iter().find(|complaint| complaint.field == name);
            own.map(|complaint| complaint.message.clone())
        };
        let chosen = events(sent);
        let choice = |word, name| Choice { word, name, is_chosen: chosen.contains(&word) };
        let everything = choice(Events::ALL, "Everything, and kinds that are yet to come");
        let some = Event::SUBSCRIBABLE.map(|event| choice(event.as_str(), event_name(event)));
        Self {
            url: Text {
                name: URL,
                label: "Address of your receiver",
                hint: "Such as https://example.com/hooks/grabd. It must be public.".to_owned(),
                longest: URL_BYTES,
                input_mode: "url",
                is_required: true,
                value: sent.one(URL).to_owned(),
                error: error(URL),
            },
            events: std::iter::once(everything).chain(some).collect(),
            events_error: error(EVENTS),
            description: Text {
                name: DESCRIPTION,
                label: "Description",
                hint: format!("For people, up to {DESCRIPTION_CHARS} characters. May stay empty."),
                longest: DESCRIPTION_CHARS,
                input_mode: "text",
                is_required: false,
                value: sent.one(DESCRIPTION).to_owned(),
                error: error(DESCRIPTION),
            },
        }
    }
}

fn events(sent: &Form) -> Vec<&str> {
    sent.fields().iter().filter(|(name, _)| name == EVENTS).map(|(_, word)| &**word).collect()
}

/// The request that a form makes. The core says what will do.
pub(super) fn request(sent: &Form) -> Request {
    let mut events: Vec<String> = events(sent).into_iter().map(str::to_owned).collect();
    if events.is_empty() {
        // Over a wire, no words mean all. Nobody means that who has taken away every mark, so it has to be refused.
        events.push(String::new());
    }
    Request {
        url: Some(with_scheme(sent.one(URL).trim().to_owned())),
        events: Some(events),
        description: Some(sent.one(DESCRIPTION).trim().to_owned()),
        status: None,
        unparsed: Vec::new(),
    }
}

/// What a refusal means for who filled the form in; `Err` when they can do nothing about it here.
pub(super) fn complaint(fault: Fault, sent: &Form) -> Result<Complaint, Fault> {
    let about = |field: &'static str, message: String| Ok(Complaint { field, message });
    match fault {
        Fault::BadRequest(field) => match field.name {
            URL if sent.one(URL).trim().is_empty() => about(URL, "Write the address of your receiver.".to_owned()),
            URL => about(URL, must("The address", &field)),
            EVENTS if events(sent).is_empty() => about(EVENTS, "Choose what it hears of.".to_owned()),
            EVENTS => about(EVENTS, must("The events", &field)),
            DESCRIPTION => about(DESCRIPTION, must("The description", &field)),
            _ => about(
                ENVIRONMENT,
                format!(
                    "The team has {MAX_ENDPOINTS} webhooks there, as many as it may have. Delete one of them first."
                ),
            ),
        },
        Fault::SsrfDetected(field) => {
            let rule = "Messages are sent to public addresses alone.";
            about(URL, format!("{rule} {}", must("The address", &field)))
        }
        Fault::Unauthorized
        | Fault::InvalidViewport(_)
        | Fault::IdempotencyMismatch(_)
        | Fault::CreditsExhausted
        | Fault::NotFound { .. }
        | Fault::IdempotencyConflict
        | Fault::RenderBlocked(_)
        | Fault::RateLimitExceeded { .. }
        | Fault::QueueLimitExceeded { .. }
        | Fault::RenderFailed(_)
        | Fault::InternalError => Err(fault),
    }
}

fn must(label: &str, field: &faults::Field) -> String {
    let faults::Field { name: _, seen, allowed } = field;
    match seen.is_empty() {
        true => format!("{label} must be {allowed}."),
        false => format!("{label} must be {allowed}; it was {seen}."),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::address::Policy;
    use grabd_domain::webhooks::{Registration, Rules};

    use super::*;

    fn refused(query: &str) -> Option<(&'static str, String)> {
        let (sent, policy) = (Form::parse(query.as_bytes()), Policy::default());
        let fault = Registration::parse(&request(&sent), Rules { policy: &policy, allow_http: false }).err()?;
        complaint(fault, &sent).ok().map(|complaint| (complaint.field, complaint.message))
    }

    #[test]
    fn what_is_wrong_is_said_beside_its_field() {
        for (query, field, said) in [
            ("events=*", "url", "Write the address of your receiver."),
            ("url=+&events=*", "url", "Write the address of your receiver."),
            ("url=http://example.com/&events=*", "url", "must be an https URL of a public address; it was \"http:"),
            (
                "url=https://10.0.0.1/&events=*",
                "url",
                "must be a URL whose host is a public address; it was \"10.0.0.1\".",
            ),
            ("url=example.com", "events", "Choose what it hears of."),
            ("url=example.com&events=grab.lost", "events", "it was \"grab.lost\"."),
        ] {
            let (named, message) = refused(query).unwrap();
            assert!(named == field && message.contains(said), "{query}: {named}: {message}");
        }
        let long = format!("url=example.com&events=*&description={}", "a".repeat(201));
        assert_eq!(refused(&long).map(|(field, _)| field), Some("description"));
        assert_eq!(refused("url=example.com&events=grab.done&events=grab.failed&description=+a+"), None);
    }

    #[test]
    fn a_form_begins_with_what_is_registered() {
        let chosen = |fields: Fields| -> Vec<_> {
            fields.events.into_iter().filter(|choice| choice.is_chosen).map(|choice| choice.word).collect()
        };
        assert_eq!(chosen(Fields::empty()), ["*"]);
        assert_eq!(
            chosen(Fields::of(&Form::parse(b"events=grab.done&events=grab.failed"), &[])),
            ["grab.done", "grab.failed"]
        );
    }
}
