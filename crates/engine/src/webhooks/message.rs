//! The message body: the event, and the grab as returned by `GET /v1/grabs/{id}`, the balance, or the
//! monitor and its run, or the site job.

use grabd_api::{MessageData, MonitorEvent, MonitorRun, SLICE_KIND, SiteEvent, TestedWebhook, WebhookMessage};
use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::DeliveryId;
use grabd_domain::site::Site;
use grabd_domain::webhooks::{Event, message_id};
use grabd_store::low_balance::LowBalance;
use grabd_store::monitors::MonitorAlert;
use grabd_store::webhooks::MessageContent;

use crate::api_grab::api_grab;
use crate::api_monitor::{api_monitor, api_run};
use crate::api_site::api_site;

/// Documented maximum size of a message.
const MAX_BYTES: usize = 20_000;

/// Composes the message. It is the same at every attempt.
pub(crate) fn compose(owed: &MessageContent, public_url: &str) -> String {
    let MessageContent { id, endpoint, event, at, environment, grab } = owed;
    let message = |data: MessageData<'_>| message(*id, *event, *at, *environment, data);
    let Some(grab) = grab else {
        return message(MessageData::Test(TestedWebhook { webhook_id: endpoint.to_string().into() }));
    };
    let mut data = api_grab(grab, public_url);
    let whole = message(MessageData::Grab(Box::new(data.clone())));
    if whole.len() < MAX_BYTES {
        return whole;
    }
    // A site may redirect to a URL of any length, and what the page says may be long, also in the headings of slices.
    (data.final_url, data.open_graph, data.canonical_url) = (None, None, None);
    (data.icon_url, data.description, data.title) = (None, None, None);
    data.files.iter_mut().flatten().for_each(|file| file.heading = None);
    let shorter = message(MessageData::Grab(Box::new(data.clone())));
    if shorter.len() < MAX_BYTES {
        return shorter;
    }
    // Many slices, with a long target URL and long metadata of the caller. All else is shorter.
    if let Some(files) = &mut data.files {
        files.retain(|file| file.kind != SLICE_KIND);
    }
    message(MessageData::Grab(Box::new(data)))
}

/// Composes the message about a low balance.
pub(crate) fn low_balance_message(alert: &LowBalance, id: DeliveryId, at: Timestamp) -> String {
    let LowBalance { team, team_name: _, credits, below, reason: _, recipients: _ } = alert;
    let balance = grabd_api::LowBalance { team_id: team.to_string().into(), credits: *credits, alert_below: *below };
    message(id, Event::CreditsLow, at, Environment::Live, MessageData::Balance(balance))
}

/// Composes the message about a monitor. If it would be too long, long options of its capture, the changes in the monitor, and
/// as many of the last changes of the run as needed are left out.
pub(crate) fn monitor_message(alert: &MonitorAlert, id: DeliveryId, at: Timestamp) -> String {
    let MonitorAlert { event, monitor, run } = alert;
    let compose = |monitor: grabd_api::Monitor<'_>, run: MonitorRun<'_>| {
        let about = MonitorEvent { monitor, run };
        message(id, *event, at, Environment::Live, MessageData::Monitor(Box::new(about)))
    };
    let whole = compose(api_monitor(monitor), api_run(run));
    if whole.len() < MAX_BYTES {
        return whole;
    }
    let mut shorter = api_monitor(monitor);
    shorter.capture.retain(|name, _| name == "url");
    if let Some(image) = &mut shorter.compare.image {
        image.ignore.clear();
    }
    if let Some(text) = &mut shorter.compare.text {
        text.ignore_patterns.clear();
    }
    if let Some(last) = &mut shorter.last_run {
        last.text_changes.clear();
        last.element_changes.clear();
    }
    let mut cut = api_run(run);
    loop {
        let text = compose(shorter.clone(), cut.clone());
        let is_short = text.len() < MAX_BYTES;
        if is_short || (cut.element_changes.pop().is_none() && cut.text_changes.pop().is_none()) {
            return text;
        }
    }
}

/// Composes the message about a site job that has ended. If it would be too long, long options of its captures and its patterns are
/// left out.
pub(crate) fn site_message(site: &Site, id: DeliveryId, at: Timestamp) -> String {
    let compose = |site: grabd_api::Site<'_>| {
        let data = MessageData::Site(Box::new(SiteEvent { site }));
        message(id, Event::SiteFinished, at, Environment::Live, data)
    };
    let whole = compose(api_site(site));
    if whole.len() < MAX_BYTES {
        return whole;
    }
    let mut shorter = api_site(site);
    shorter.capture.clear();
    shorter.include.clear();
    shorter.exclude.clear();
    compose(shorter)
}

fn message(id: DeliveryId, event: Event, at: Timestamp, environment: Environment, data: MessageData<'_>) -> String {
    let message = WebhookMessage {
        id: message_id(id).into(),
        r#type: event.as_str().into(),
        timestamp: at.to_string().into(),
        environment: environment.as_str().into(),
        data,
    };
    serde_json::to_string(&message).expect("a message has only members that JSON can represent")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grabd_domain::capture::{CaptureRequest, CaptureSpec, FileKind};
    use grabd_domain::credentials::Principal;
    use grabd_domain::grabs::{
        BlockedRequests, Challenge, Class, Consent, ConsentResult, Difference, Failure, FailureReason, FileKey,
        Findings, Grab, GrabFile, GrabSlice, GrabViewport, ImageKey, OpenGraph, PageInfo, PerceptualHash, Region,
        RenderMetadata, SettledBy, SlicePlace, State, Timings, ViewportSize, Warning,
    };
    use grabd_domain::ids::{EndpointId, GrabId, MonitorId, RunId, SiteId, TeamId, UserId};
    use grabd_domain::monitor::{
        Change, ElementChange, MAX_ELEMENT_CHANGES, MAX_TEXT_CHANGES, Monitor, MonitorRequest, MonitorSpec,
        MonitorState, Progress, Run, RunOutcome, TEXT_CHANGE_CHARS, TextChange,
    };
    use grabd_domain::site::{PageCounts, SiteRequest, SiteSpec, SiteState};
    use serde_json::{Value, json};
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
        assert!(text.ends_with(r#","metadata":{"order":"8421"},"challenge":null,"words":null}}"#), "{text}");
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

    /// A done grab with all that a grab can have.
    fn whole() -> Grab {
        let page = PageInfo {
            title: Some("A title".to_owned()),
            description: Some("What it is about".to_owned()),
            lang: Some("en".to_owned()),
            canonical_url: Some("https://example.com/canonical".to_owned()),
            icon_url: Some("https://example.com/icon.png".to_owned()),
            open_graph: Some(OpenGraph {
                title: Some("Shared".to_owned()),
                kind: Some("article".to_owned()),
                ..OpenGraph::default()
            }),
            page_width: Some(1280),
            page_height: Some(4000),
            words: Some(640),
        };
        let regions = vec![Region { x: 1, y: 2, width: 3, height: 4 }];
        let size = ViewportSize { viewport_width: 390, viewport_height: 844, width: 780, height: 1688 };
        let metadata = RenderMetadata {
            final_url: Some("https://example.com/end".to_owned()),
            http_status: Some(200),
            settled_by: Some(SettledBy::Quiet),
            blocked_requests: 1,
            image_width: Some(1280),
            image_height: Some(4000),
            truncated: true,
            warnings: vec![Warning::parse("images_failed:2").unwrap()],
            page,
            redirects: Some(1),
            timings: Some(Timings { navigate_ms: 10, load_ms: Some(20), settle_ms: 30, shot_ms: 40 }),
            image_sha256: Some("ab".repeat(32)),
            files: [FileKind::Text, FileKind::Difference]
                .map(|kind| GrabFile { kind, key: FileKey::new(7), bytes: 70 })
                .to_vec(),
            slices: vec![GrabSlice { key: FileKey::new(8), bytes: 80, place: SlicePlace::new(0, 256, Some("Prices")) }],
            viewports: vec![GrabViewport { key: FileKey::new(9), bytes: 90, size }],
            step_images: Vec::new(),
            findings: Findings {
                blank: Some(false),
                challenge: Some(Challenge::parse("cloudflare")),
                consent: Some(Consent::new("onetrust", ConsentResult::parse("rejected").unwrap())),
                blocked: Some(BlockedRequests { guard: 1, ads: 2, trackers: 3, asked: 4 }),
            },
            difference: Some(Difference { compared_to: GrabId(Uuid::nil()), changed_ppm: 21_000, regions }),
            phash: PerceptualHash::parse("00ff00ff00ff00ff"),
        };
        let (finished_at, image) = (Timestamp::from_ms(500), Some(ImageKey::new(1, "png")));
        let mut grab = failed("");
        grab.spec.metadata.insert("order".to_owned(), "8421".to_owned());
        grab.state = State::Done { finished_at, image, size_bytes: 12_345, execution_ms: 321, metadata };
        grab
    }

    /// Receivers may compare bytes, so no member changes its place.
    #[test]
    fn members_of_messages_keep_their_order() {
        let text = compose(&owed(Some(whole()), Event::GrabDone), "https://g.example");
        assert_eq!(text, include_str!("golden/grab_done.json").trim_end());
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
    fn long_options_of_a_monitor_are_dropped_to_limit_the_size() {
        let alert = |script: Option<String>, line: &str| {
            let capture =
                CaptureRequest { url: Some("https://example.com/".into()), script, ..CaptureRequest::default() };
            let request =
                MonitorRequest { capture: Some(capture), every: Some("1h".into()), ..MonitorRequest::default() };
            let (id, at) = (MonitorId(Uuid::nil()), Timestamp::from_ms(0));
            let run = Run {
                id: RunId(Uuid::nil()),
                monitor: id,
                due_at: at,
                outcome: RunOutcome::Changed,
                grab: Some(GrabId(Uuid::nil())),
                compared_to: None,
                difference_ppm: Some(5),
                changes: vec![Change::Image],
                text_changes: vec![
                    TextChange { before: Some(line.into()), after: Some(line.into()) };
                    MAX_TEXT_CHANGES
                ],
                element_changes: vec![ElementChange::changed("button", line, line, line); MAX_ELEMENT_CHANGES],
                is_alerted: true,
                finished_at: Some(at),
                error: None,
            };
            let monitor = Monitor {
                id,
                team: TeamId(Uuid::nil()),
                environment: Environment::Live,
                creator: Principal::User(UserId(Uuid::nil())),
                spec: MonitorSpec::parse(&request, Duration::ZERO).unwrap(),
                state: MonitorState::Active,
                progress: Progress::default(),
                created_at: at,
                updated_at: at,
                next_run_at: Some(at),
                baseline: None,
                has_feed: false,
                last_run: Some(run.clone()),
            };
            let alert = MonitorAlert { event: Event::MonitorChanged, monitor, run };
            let text = monitor_message(&alert, DeliveryId(Uuid::nil()), at);
            assert!(text.len() < MAX_BYTES, "{} bytes", text.len());
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let short = alert(Some("1".into()), "x");
        assert_eq!((&short["type"], &short["data"]["run"]["outcome"]), (&json!("monitor.changed"), &json!("changed")));
        assert_eq!(short["data"]["monitor"]["capture"]["script"], json!("1"));
        let long = alert(Some("\"".repeat(16_000)), &"☃".repeat(TEXT_CHANGE_CHARS));
        assert_eq!(long["data"]["monitor"]["capture"], json!({ "url": "https://example.com/" }));
        let left = |message: &Value| message["data"]["run"]["text_changes"].as_array().map_or(0, Vec::len);
        assert_eq!(left(&short), MAX_TEXT_CHANGES);
        assert!((1..MAX_TEXT_CHANGES).contains(&left(&long)), "{long}");
    }

    #[test]
    fn long_options_of_a_site_job_are_dropped_to_limit_the_size() {
        let message = |pattern: &str| {
            let request = SiteRequest {
                url: Some("https://example.com/".into()),
                include: vec![pattern.into(); 20],
                exclude: vec![pattern.into(); 20],
                ..SiteRequest::default()
            };
            let (id, at) = (SiteId(Uuid::nil()), Timestamp::from_ms(0));
            let site = Site {
                id,
                team: TeamId(Uuid::nil()),
                environment: Environment::Live,
                creator: Principal::User(UserId(Uuid::nil())),
                spec: SiteSpec::parse(&request, 1000, false).unwrap(),
                state: SiteState::Done,
                error: None,
                pages: PageCounts::default(),
                created_at: at,
                updated_at: at,
                finished_at: Some(at),
            };
            let text = site_message(&site, DeliveryId(Uuid::nil()), at);
            assert!(text.len() < MAX_BYTES, "{} bytes", text.len());
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let short = message("/a/*");
        assert_eq!((&short["type"], &short["data"]["site"]["state"]), (&json!("site.finished"), &json!("done")));
        assert_eq!(short["data"]["site"]["include"].as_array().map(Vec::len), Some(20));
        let long = message(&format!("/{}", "☃".repeat(199)));
        assert_eq!(long["data"]["site"]["include"], json!([]));
        assert_eq!(long["data"]["site"]["url"], json!("https://example.com/"));
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
