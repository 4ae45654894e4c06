//! The message body: the event, and the grab as returned by `GET /v1/grabs/{id}`, or the balance.

use grabd_domain::Timestamp;
use grabd_domain::capture::BesideName;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{
    BlockedRequests, Challenge, Consent, Difference, Findings, Grab, GrabFile, OpenGraph, PageInfo, Region,
    RenderMetadata, SettledBy, ShownFile, State, Timings,
};
use grabd_domain::ids::DeliveryId;
use grabd_domain::webhooks::{Event, message_id};
use grabd_store::low_balance::LowBalance;
use grabd_store::webhooks::MessageContent;
use serde_json::{Map, Value, json};

/// Documented maximum size of a message.
const MAX_BYTES: usize = 20_000;

/// Composes the message. It is the same at every attempt.
pub(crate) fn compose(owed: &MessageContent, public_url: &str) -> String {
    let MessageContent { id, endpoint, event, at, environment, grab } = owed;
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
    if whole.len() < MAX_BYTES {
        return whole;
    }
    // A site may redirect to a URL of any length, and what the page says may be long, also in the headings of slices.
    for name in ["final_url", "open_graph", "canonical_url", "icon_url", "description", "title"] {
        data.insert(name.to_owned(), Value::Null);
    }
    for file in data.get_mut("files").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(file) = file.as_object_mut() {
            file.shift_remove("heading");
        }
    }
    let shorter = message(Value::Object(data.clone()));
    if shorter.len() < MAX_BYTES {
        return shorter;
    }
    // Many slices, with a long target URL and long metadata of the caller. All else is shorter.
    if let Some(files) = data.get_mut("files").and_then(Value::as_array_mut) {
        files.retain(|file| file["kind"] != BesideName::SLICE);
    }
    message(Value::Object(data))
}

/// Composes the message about a low balance.
pub(crate) fn low_balance_message(alert: &LowBalance, id: DeliveryId, at: Timestamp) -> String {
    let LowBalance { team, team_name: _, credits, below, owners: _ } = alert;
    json!({
        "id": message_id(id),
        "type": Event::CreditsLow.as_str(),
        "timestamp": at.to_string(),
        "environment": Environment::Live.as_str(),
        "data": { "team_id": team.to_string(), "credits": credits, "alert_below": below },
    })
    .to_string()
}

/// The grab, with members in contract order.
fn data(grab: &Grab, public_url: &str) -> Map<String, Value> {
    let Grab { id, team: _, environment: _, class: _, spec, created_at, deleted_at: _, attempts: _, state } = grab;
    let (mut image_url, mut bytes, mut execution_ms, mut error_message) = (None, None, None, None);
    let (mut error_code, mut error_cause) = (None, None);
    let none = RenderMetadata::default();
    let metadata = match state {
        State::Pending | State::Processing => None,
        State::Done { finished_at: _, image, size_bytes, execution_ms: took, metadata } => {
            image_url = image.as_ref().map(|key| format!("{public_url}/{}", key.path()));
            bytes = Some(*size_bytes);
            execution_ms = Some(*took);
            Some(metadata)
        }
        State::Failed { finished_at: _, failure, metadata } => {
            error_message = Some(failure.message.as_str());
            error_code = Some(failure.reason.code().as_str());
            error_cause = Some(failure.cause.as_str());
            Some(metadata)
        }
    };
    let ended = metadata.is_some();
    let RenderMetadata {
        final_url,
        http_status,
        settled_by,
        blocked_requests,
        image_width,
        image_height,
        truncated,
        warnings,
        page: PageInfo { title, description, lang, canonical_url, icon_url, open_graph, page_width, page_height },
        redirects,
        timings,
        image_sha256,
        files: _,
        slices: _,
        viewports: _,
        findings,
        difference,
        phash,
    } = metadata.unwrap_or(&none);
    let difference_image = metadata.and_then(RenderMetadata::difference_image).filter(|_| image_url.is_some());
    let difference = difference.as_ref().map(|of| difference_member(of, difference_image, public_url));
    // The files are deleted with the image.
    let files: Vec<Value> = match &image_url {
        Some(_) => {
            let files = metadata.into_iter().flat_map(|metadata| metadata.shown_files(spec.format));
            files.map(|file| file_member(&file, public_url)).collect()
        }
        None => Vec::new(),
    };
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
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
        "warnings": ended.then_some(warnings),
        "title": title,
        "description": description,
        "lang": lang,
        "canonical_url": canonical_url,
        "icon_url": icon_url,
        "open_graph": open_graph.as_ref().map(|OpenGraph { title, description, image, site_name, kind }| json!({
            "title": title,
            "description": description,
            "image": image,
            "site_name": site_name,
            "type": kind,
        })),
        "page_width": page_width,
        "page_height": page_height,
        "redirects": redirects,
        "timings": timings.map(|Timings { navigate_ms, load_ms, settle_ms, shot_ms }| json!({
            "queued_ms": grab.queued_ms(),
            "navigate_ms": navigate_ms,
            "load_ms": load_ms,
            "settle_ms": settle_ms,
            "shot_ms": shot_ms,
        })),
    });
    match data {
        Value::Object(mut data) => {
            data.insert("image_sha256".to_owned(), json!(image_sha256));
            if !files.is_empty() {
                data.insert("files".to_owned(), Value::Array(files));
            }
            data.extend(error_code.map(|code| ("error_code".to_owned(), Value::from(code))));
            data.extend(error_cause.map(|cause| ("error_cause".to_owned(), Value::from(cause))));
            if !spec.metadata.is_empty() {
                data.insert("metadata".to_owned(), json!(spec.metadata));
            }
            add_findings(&mut data, findings);
            data.extend(difference.map(|difference| ("difference".to_owned(), difference)));
            data.extend(phash.map(|hash| ("phash".to_owned(), Value::from(hash.to_string()))));
            data
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn file_member(file: &ShownFile<'_>, public_url: &str) -> Value {
    let mut member = json!({
        "kind": file.kind(),
        "url": format!("{public_url}/{}", file.path),
        "media_type": file.media_type,
        "bytes": file.bytes,
    });
    if let Some(size) = file.viewport {
        member["width"] = json!(size.width);
        member["height"] = json!(size.height);
        member["viewport"] = json!({ "width": size.viewport_width, "height": size.viewport_height });
    }
    if let Some(place) = file.place {
        member["y"] = json!(place.y);
        member["height"] = json!(place.height);
        if let Some(heading) = &place.heading {
            member["heading"] = json!(heading);
        }
    }
    member
}

fn difference_member(difference: &Difference, image: Option<&GrabFile>, public_url: &str) -> Value {
    let mut member = json!({
        "compared_to": difference.compared_to.to_string(),
        "ratio": difference.ratio(),
        "regions": difference.regions.iter().map(|Region { x, y, width, height }| {
            json!({ "x": x, "y": y, "width": width, "height": height })
        }).collect::<Vec<_>>(),
    });
    if let (Some(file), Some(member)) = (image, member.as_object_mut()) {
        member.insert("image_url".to_owned(), Value::from(format!("{public_url}/{}", file.path())));
    }
    member
}

/// Adds what was found out about the page. Like in the REST API, what is not known is left out.
fn add_findings(data: &mut Map<String, Value>, findings: &Findings) {
    let Findings { blank, challenge, consent, blocked } = findings;
    data.insert("challenge".to_owned(), json!(challenge.map(Challenge::as_str)));
    let found = [
        (
            "consent",
            consent.as_ref().map(|Consent { cmp, result }| json!({ "cmp": cmp, "result": result.as_str() })),
        ),
        (
            "blocked",
            blocked.map(|BlockedRequests { guard, ads, trackers, asked }| {
                json!({ "guard": guard, "ads": ads, "trackers": trackers, "asked": asked })
            }),
        ),
        ("blank", blank.map(Value::from)),
    ];
    data.extend(found.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};
    use grabd_domain::grabs::{Class, Failure, FailureReason, FileKey, GrabSlice, ImageKey, SlicePlace};
    use grabd_domain::ids::{EndpointId, GrabId, TeamId};
    use uuid::Uuid;

    use super::*;

    fn owed(grab: Option<Grab>, event: Event) -> MessageContent {
        let at = Timestamp::from_ms(1_795_206_774_120);
        let (id, endpoint) = (DeliveryId(Uuid::from_u128(0x9f1c)), EndpointId(Uuid::nil()));
        MessageContent { id, endpoint, event, at, environment: Environment::Live, grab }
    }

    fn failed(final_url: &str) -> Grab {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        let metadata =
            RenderMetadata { final_url: Some(final_url.into()), http_status: Some(403), ..RenderMetadata::default() };
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
            state: State::Failed { finished_at, failure, metadata },
        }
    }

    /// End-to-end tests compare `data` with the REST response.
    #[test]
    fn message_contains_event_time_and_grab() {
        let text = compose(&owed(Some(failed("https://example.com/")), Event::GrabFailed), "https://g.example");
        let start = r#"{"id":"msg_00000000000000000000000000009f1c","type":"grab.failed","timestamp":"2026-11-20T20:32:54.120Z","environment":"live","data":{"id":"00000000-0000-0000-0000-000000000000","status":"failed","created_at":"1970-01-01T00:00:00.001Z","target_url":"https://example.com/","image_url":null,"#;
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains(r#""error_message":"It said no.","final_url":"https://example.com/","http_status":403"#));
        assert!(text.contains(r#""error_code":"render_blocked","error_cause":"target""#), "{text}");
        let test = compose(&owed(None, Event::Test), "");
        assert!(test.ends_with(r#""data":{"webhook_id":"00000000-0000-0000-0000-000000000000"}}"#), "{test}");
    }

    #[test]
    fn metadata_is_in_the_message_if_there_is_any() {
        let mut grab = failed("https://example.com/");
        let plain = compose(&owed(Some(grab.clone()), Event::GrabFailed), "");
        assert!(!plain.contains("metadata"), "{plain}");
        grab.spec.metadata.insert("order".to_owned(), "8421".to_owned());
        let text = compose(&owed(Some(grab), Event::GrabFailed), "");
        assert!(text.ends_with(r#","metadata":{"order":"8421"},"challenge":null}}"#), "{text}");
    }

    #[test]
    fn largest_metadata_and_texts_of_the_page_fit() {
        let mut grab = failed(&"x".repeat(2048));
        grab.spec.metadata = (0..8).map(|n| (format!("{n}{}", "n".repeat(63)), "😀".repeat(256))).collect();
        if let State::Failed { metadata, failure, .. } = &mut grab.state {
            metadata.page.title = Some("😀".repeat(PageInfo::TITLE_CHARS));
            metadata.page.description = Some("😀".repeat(PageInfo::DESCRIPTION_CHARS));
            failure.message = "\"".repeat(2048);
        }
        let text = compose(&owed(Some(grab), Event::GrabFailed), "");
        assert!(text.len() < MAX_BYTES && text.contains("😀\"}") && text.contains(r#""title":null"#), "{}", text.len());
    }

    /// A done grab with the most slices.
    fn sliced(heading: &str) -> Grab {
        let slice = |y| GrabSlice { key: FileKey::new(y), bytes: 1, place: SlicePlace::new(0, 256, Some(heading)) };
        let metadata = RenderMetadata { slices: (0..64).map(slice).collect(), ..RenderMetadata::default() };
        let (finished_at, image) = (Timestamp::from_ms(2), Some(ImageKey::new(1, "png")));
        let state = State::Done { finished_at, image, size_bytes: 1, execution_ms: 1, metadata };
        Grab { state, ..failed("") }
    }

    #[test]
    fn headings_and_then_slices_are_dropped_to_limit_the_size() {
        let files = |grab: &Grab| {
            let origin = format!("https://{}.example", "grabs".repeat(16));
            let text = compose(&owed(Some(grab.clone()), Event::GrabDone), &origin);
            assert!(text.len() < MAX_BYTES, "{} bytes", text.len());
            serde_json::from_str::<Value>(&text).unwrap()["data"]["files"].as_array().unwrap().clone()
        };
        let short = files(&sliced("Prices"));
        assert_eq!((short.len(), &short[63]["heading"]), (64, &json!("Prices")));
        let mut grab = sliced(&"é".repeat(200));
        let without = files(&grab);
        assert_eq!((without.len(), &without[63]["heading"], &without[63]["height"]), (64, &Value::Null, &json!(256)));
        grab.spec.metadata = (0..8).map(|n| (format!("{n}{}", "n".repeat(63)), "😀".repeat(256))).collect();
        assert_eq!(files(&grab), [] as [Value; 0]);
    }

    #[test]
    fn long_final_url_is_dropped_to_limit_the_size() {
        let text = compose(
            &owed(Some(failed(&format!("https://example.com/{}", "x".repeat(100_000)))), Event::GrabFailed),
            "",
        );
        assert!(text.len() < MAX_BYTES && text.contains(r#""final_url":null"#), "{text}");
    }
}
