//! What is sent: the event, and the grab as `GET /v1/grabs/{id}` shows it.

use grabd_domain::grabs::{Facts, Grab, SettledBy, State};
use grabd_domain::webhooks::message_id;
use grabd_store::Owed;
use serde_json::{Map, Value, json};

/// Receivers may count on a message being smaller than this.
const LIMIT_BYTES: usize = 20_000;

/// The message, as it is sent at every attempt.
pub(crate) fn compose(owed: &Owed, public_url: &str) -> String {
    let Owed { id, endpoint, event, at, environment, grab } = owed;
    let message = |data: Value| {
        json!({
            "id": message_id(*id),
            "type": event.as_str(),
            "timestamp": at.to_string(),
            "environment": environment.as_str(),
            "data": data,
        })
        .to_string()
    };
    let Some(grab) = grab else { return message(json!({ "webhook_id": endpoint.to_string() })) };
    let mut data = data(grab, public_url);
    let whole = message(Value::Object(data.clone()));
    if whole.len() < LIMIT_BYTES {
        return whole;
    }
    // A site may redirect to an address of any length; everything else is bounded.
    data.insert("final_url".to_owned(), Value::Null);
    message(Value::Object(data))
}

/// A grab in the contract's members and order.
fn data(grab: &Grab, public_url: &str) -> Map<String, Value> {
    let Grab { id, team: _, environment: _, class: _, spec, created_at, deleted_at: _, attempts: _, state } = grab;
    let (mut image_url, mut bytes, mut execution_ms, mut error_message) = (None, None, None, None);
    let none = Facts::default();
    let facts = match state {
        State::Pending | State::Processing => None,
        State::Done { finished_at: _, image, size_bytes, execution_ms: took, facts } => {
            image_url = image.as_ref().map(|key| format!("{public_url}/{}", key.path()));
            bytes = Some(*size_bytes);
            execution_ms = Some(*took);
            Some(facts)
        }
        State::Failed { finished_at: _, failure, facts } => {
            error_message = Some(failure.message.as_str());
            Some(facts)
        }
    };
    let ended = facts.is_some();
    let Facts { final_url, http_status, settled_by, blocked_requests, image_width, image_height, truncated } =
        facts.unwrap_or(&none);
    let settled_by = settled_by.map(|settled_by| match settled_by {
        SettledBy::Quiet => "quiet",
        SettledBy::Deadline => "deadline",
    });
    let data = json!({
        "id": id.to_string(),
        "status": grab.status().as_str(),
        "created_at": created_at.to_string(),
        "target_url": spec.url.as_str(),
        "image_url": image_url,
        "width": spec.viewport.width(),
        "height": spec.reported_height(),
        "format": spec.format.as_str(),
        "bytes": bytes,
        "execution_ms": execution_ms,
        "error_message": error_message,
        "final_url": final_url,
        "http_status": http_status,
        "settled_by": settled_by,
        "blocked_requests": ended.then_some(blocked_requests),
        "image_width": image_width,
        "image_height": image_height,
        "truncated": ended.then_some(truncated),
    });
    match data {
        Value::Object(data) => data,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};
    use grabd_domain::credentials::Environment;
    use grabd_domain::grabs::{Class, Failure, FailureReason};
    use grabd_domain::ids::{DeliveryId, EndpointId, GrabId, TeamId};
    use grabd_domain::webhooks::Event;
    use uuid::Uuid;

    use super::*;

    fn owed(grab: Option<Grab>, event: Event) -> Owed {
        let at = Timestamp::from_ms(1_795_206_774_120);
        let (id, endpoint) = (DeliveryId(Uuid::from_u128(0x9f1c)), EndpointId(Uuid::nil()));
        Owed { id, endpoint, event, at, environment: Environment::Live, grab }
    }

    fn failed(final_url: &str) -> Grab {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        let facts = Facts { final_url: Some(final_url.into()), http_status: Some(403), ..Facts::default() };
        let failure = Failure::new(FailureReason::RenderBlocked, "It said no.");
        let finished_at = Timestamp::from_ms(2);
        Grab {
            id: GrabId(Uuid::nil()),
            team: TeamId(Uuid::nil()),
            environment: Environment::Live,
            class: Class::Async,
            spec: CaptureSpec::parse(&request).unwrap(),
            created_at: Timestamp::from_ms(1),
            deleted_at: None,
            attempts: 1,
            state: State::Failed { finished_at, failure, facts },
        }
    }

    /// That `data` is what REST shows is held by the end-to-end tests, which compare the two.
    #[test]
    fn a_message_says_what_happened_when_and_to_what() {
        let text = compose(&owed(Some(failed("https://example.com/")), Event::GrabFailed), "https://g.example");
        let start = r#"{"id":"msg_00000000000000000000000000009f1c","type":"grab.failed","timestamp":"2026-11-20T20:32:54.120Z","environment":"live","data":{"id":"00000000-0000-0000-0000-000000000000","status":"failed","created_at":"1970-01-01T00:00:00.001Z","target_url":"https://example.com/","image_url":null,"#;
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains(r#""error_message":"It said no.","final_url":"https://example.com/","http_status":403"#));
        let test = compose(&owed(None, Event::Test), "");
        assert!(test.ends_with(r#""data":{"webhook_id":"00000000-0000-0000-0000-000000000000"}}"#), "{test}");
    }

    #[test]
    fn no_redirect_makes_a_message_large() {
        let text = compose(
            &owed(Some(failed(&format!("https://example.com/{}", "x".repeat(100_000)))), Event::GrabFailed),
            "",
        );
        assert!(text.len() < LIMIT_BYTES && text.contains(r#""final_url":null"#), "{text}");
    }
}
