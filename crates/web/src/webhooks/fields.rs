//! The form fields of a webhook: rendering, parsing and error messages.

use grabd_domain::limits::URL_BYTES;
use grabd_domain::webhooks::{DESCRIPTION_CHARS, Endpoint, EndpointRequest, Event, Events};
use grabd_domain::{Fault, faults};

use super::view::event_name;
use crate::environments::ENVIRONMENT;
use crate::form::{FieldError, Form};
use crate::grabs::options::{Text, with_scheme};

const URL: &str = "url";
const EVENTS: &str = "events";
const DESCRIPTION: &str = "description";

/// The fields that can be changed later, with their values.
pub(super) struct Fields {
    pub(super) url: Text,
    pub(super) events: Vec<Choice>,
    pub(super) events_error: Option<String>,
    pub(super) description: Text,
}

/// An event option.
pub(super) struct Choice {
    pub(super) word: &'static str,
    pub(super) name: &'static str,
    pub(super) is_chosen: bool,
}

impl Fields {
    /// The fields of a new webhook, which receives all events.
    pub(super) fn empty() -> Self {
        Self::of(&Form::from_iter([(EVENTS, Events::ALL)]), &[])
    }

    /// The fields of an existing webhook.
    pub(super) fn of_webhook(webhook: &Endpoint) -> Self {
        let mut pairs = vec![(URL, webhook.url.as_str()), (DESCRIPTION, &*webhook.description)];
        pairs.extend(webhook.events.words().into_iter().map(|word| (EVENTS, word)));
        Self::of(&Form::from_iter(pairs), &[])
    }

    /// The fields of a submitted form, with their errors.
    pub(super) fn of(input: &Form, errors: &[FieldError]) -> Self {
        let error = |name| {
            let own = errors.iter().find(|field_error| field_error.field == name);
            own.map(|field_error| field_error.message.clone())
        };
        let chosen = events(input);
        let choice = |word, name| Choice { word, name, is_chosen: chosen.contains(&word) };
        let everything = choice(Events::ALL, "All events, including future ones");
        let some = Event::SUBSCRIBABLE.map(|event| choice(event.as_str(), event_name(event)));
        Self {
            url: Text {
                name: URL,
                label: "Endpoint URL",
                hint: "A public HTTPS URL that accepts POST requests.".to_owned(),
                placeholder: "https://example.com/hooks/grabd",
                max_length: URL_BYTES,
                input_mode: "url",
                is_required: true,
                value: input.get(URL).to_owned(),
                error: error(URL),
            },
            events: std::iter::once(everything).chain(some).collect(),
            events_error: error(EVENTS),
            description: Text {
                name: DESCRIPTION,
                label: "Description",
                hint: format!("Optional, up to {DESCRIPTION_CHARS} characters."),
                placeholder: "",
                max_length: DESCRIPTION_CHARS,
                input_mode: "text",
                is_required: false,
                value: input.get(DESCRIPTION).to_owned(),
                error: error(DESCRIPTION),
            },
        }
    }
}

fn events(input: &Form) -> Vec<&str> {
    input.fields().iter().filter(|(name, _)| name == EVENTS).map(|(_, word)| &**word).collect()
}

/// Converts a form to a request. The domain validates the values.
pub(super) fn request(input: &Form) -> EndpointRequest {
    let mut events: Vec<String> = events(input).into_iter().map(str::to_owned).collect();
    if events.is_empty() {
        // The API reads an empty list as all events. In the form nothing is selected, which must be an error.
        events.push(String::new());
    }
    EndpointRequest {
        url: Some(with_scheme(input.get(URL).trim().to_owned())),
        events: Some(events),
        description: Some(input.get(DESCRIPTION).trim().to_owned()),
        status: None,
        unparsed: Vec::new(),
    }
}

/// The form error for a rejected request; `Err` if the user cannot correct it in the form.
pub(super) fn field_error(fault: Fault, input: &Form) -> Result<FieldError, Fault> {
    let about = |field: &'static str, message: String| Ok(FieldError { field, message });
    match fault {
        Fault::BadRequest(field) => match field.name {
            URL if input.get(URL).trim().is_empty() => about(URL, "Enter the endpoint URL.".to_owned()),
            URL => about(URL, must("The URL", &field)),
            EVENTS if events(input).is_empty() => about(EVENTS, "Choose at least one event.".to_owned()),
            EVENTS => about(EVENTS, must("The events", &field)),
            DESCRIPTION => about(DESCRIPTION, must("The description", &field)),
            _ => about(
                ENVIRONMENT,
                format!("The team has reached its limit of webhooks: {}. Delete one first.", field.allowed),
            ),
        },
        Fault::SsrfDetected(field) => {
            let rule = "Messages are sent to public URLs only.";
            about(URL, format!("{rule} {}", must("The URL", &field)))
        }
        Fault::Unauthorized
        | Fault::TeamSuspended
        | Fault::LinkRefused(_)
        | Fault::KeyExpired { .. }
        | Fault::Forbidden { .. }
        | Fault::InvalidViewport(_)
        | Fault::IdempotencyMismatch(_)
        | Fault::CreditsExhausted
        | Fault::NotFound { .. }
        | Fault::IdempotencyConflict
        | Fault::RenderBlocked(_)
        | Fault::RateLimitExceeded { .. }
        | Fault::WaitLimitExceeded { .. }
        | Fault::ImagesBusy { .. }
        | Fault::QueueTooLong { .. }
        | Fault::FailedRenderTimeExceeded { .. }
        | Fault::QueueLimitExceeded { .. }
        | Fault::StorageFull
        | Fault::TeamStorageFull { .. }
        | Fault::AccountStorageFull { .. }
        | Fault::RenderFailed(_)
        | Fault::Unavailable
        | Fault::InternalError => Err(fault),
    }
}

fn must(label: &str, field: &faults::Field) -> String {
    let faults::Field { name: _, member: _, seen, allowed } = field;
    match seen.is_empty() {
        true => format!("{label} must be {allowed}."),
        false => format!("{label} must be {allowed}; it was {seen}."),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::address::Policy;
    use grabd_domain::webhooks::{EndpointRules, Registration};

    use super::*;

    fn error(query: &str) -> Option<(&'static str, String)> {
        let (input, policy) = (Form::parse(query.as_bytes()), Policy::default());
        let fault =
            Registration::parse(&request(&input), EndpointRules { policy: &policy, allow_http: false }).err()?;
        field_error(fault, &input).ok().map(|field_error| (field_error.field, field_error.message))
    }

    #[test]
    fn errors_name_their_field() {
        for (query, field, expected) in [
            ("events=*", "url", "Enter the endpoint URL."),
            ("url=+&events=*", "url", "Enter the endpoint URL."),
            ("url=http://example.com/&events=*", "url", "must be an https URL of a public address; it was \"http:"),
            (
                "url=https://10.0.0.1/&events=*",
                "url",
                "must be a URL whose host is a public address; it was \"10.0.0.1\".",
            ),
            ("url=example.com", "events", "Choose at least one event."),
            ("url=example.com&events=grab.lost", "events", "it was \"grab.lost\"."),
        ] {
            let (actual, message) = error(query).unwrap();
            assert!(actual == field && message.contains(expected), "{query}: {actual}: {message}");
        }
        let long = format!("url=example.com&events=*&description={}", "a".repeat(201));
        assert_eq!(error(&long).map(|(field, _)| field), Some("description"));
        assert_eq!(error("url=example.com&events=grab.done&events=grab.failed&description=+a+"), None);
    }

    #[test]
    fn fields_select_the_registered_events() {
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
