//! A monitor as the REST API shows it: in webhook messages, and on the pages of the web app.

use grabd_api::{
    MonitorArea, MonitorCompare, MonitorElementChange, MonitorIgnored, MonitorImageCompare, MonitorNotify,
    MonitorQuiet, MonitorRun, MonitorRunError, MonitorTextChange, MonitorTextCompare,
};
use grabd_domain::capture::{CaptureSpec, Rectangle};
use grabd_domain::credentials::Environment;
use grabd_domain::monitor::{
    Compare, ElementChange, ImageCompare, Monitor, MonitorSpec, Notify, Quiet, Run, RunError, Schedule, TextChange,
    TextCompare,
};
use serde_json::{Map, Value};

/// The JSON that `GET /v1/monitors/{id}` returns, indented for people.
pub fn monitor_json(monitor: &Monitor) -> String {
    serde_json::to_string_pretty(&api_monitor(monitor)).expect("a monitor has only members that JSON can represent")
}

/// The monitor, as `GET /v1/monitors/{id}` returns it.
pub(crate) fn api_monitor(monitor: &Monitor) -> grabd_api::Monitor<'_> {
    let Monitor {
        id,
        team: _,
        environment,
        creator: _,
        spec: MonitorSpec { name, capture, schedule, compare, alert_after, notify, keep, quiet },
        state,
        progress: _,
        created_at,
        updated_at,
        next_run_at,
        baseline,
        has_feed,
        last_run,
    } = monitor;
    let (every, cron, time_zone) = match schedule {
        Schedule::Every(every) => (Some(every.to_string()), None, None),
        Schedule::Cron(local) => (None, Some(local.cron().to_string()), Some(local.zone_name())),
    };
    let Notify { webhook, email } = *notify;
    grabd_api::Monitor {
        id: id.to_string().into(),
        name: name.into(),
        capture: capture_members(capture),
        every: every.map(Into::into),
        cron: cron.map(Into::into),
        time_zone: time_zone.map(Into::into),
        compare: shown_compare(compare),
        alert_after: *alert_after,
        notify: MonitorNotify { webhook, email },
        keep: *keep,
        quiet: quiet.as_ref().map(shown_quiet),
        state: state.as_str().into(),
        created_at: created_at.to_string().into(),
        updated_at: updated_at.to_string().into(),
        next_run_at: next_run_at.map(|at| at.to_string().into()),
        baseline_grab_id: baseline.map(|grab| grab.to_string().into()),
        last_run: last_run.as_ref().map(api_run),
        live: *environment == Environment::Live,
        has_feed: *has_feed,
    }
}

/// The run, as `GET /v1/monitors/{id}/runs` returns it.
pub(crate) fn api_run(run: &Run) -> MonitorRun<'_> {
    let Run {
        id,
        monitor: _,
        due_at,
        outcome,
        grab,
        compared_to,
        difference_ppm: _,
        changes,
        text_changes,
        element_changes,
        is_alerted,
        finished_at,
        error,
    } = run;
    MonitorRun {
        id: id.to_string().into(),
        due_at: due_at.to_string().into(),
        outcome: outcome.as_str().into(),
        grab_id: grab.map(|grab| grab.to_string().into()),
        compared_to: compared_to.map(|grab| grab.to_string().into()),
        difference_ratio: run.difference_ratio(),
        what_changed: changes.iter().map(|change| change.as_str().into()).collect(),
        text_changes: text_changes.iter().map(shown_text_change).collect(),
        element_changes: element_changes.iter().map(shown_element_change).collect(),
        alerted: *is_alerted,
        finished_at: finished_at.map(|at| at.to_string().into()),
        error: error
            .as_ref()
            .map(|RunError { code, message }| MonitorRunError { code: code.into(), message: message.into() }),
    }
}

fn shown_text_change(TextChange { before, after }: &TextChange) -> MonitorTextChange<'_> {
    MonitorTextChange { before: before.as_deref().map(Into::into), after: after.as_deref().map(Into::into) }
}

fn shown_element_change(change: &ElementChange) -> MonitorElementChange<'_> {
    let ElementChange { kind, role, name, before, after } = change;
    MonitorElementChange {
        change: kind.as_str().into(),
        role: role.into(),
        name: name.into(),
        before: before.as_deref().map(Into::into),
        after: after.as_deref().map(Into::into),
    }
}

fn shown_quiet(quiet: &Quiet) -> MonitorQuiet<'_> {
    MonitorQuiet { from: quiet.from().into(), to: quiet.to().into(), time_zone: quiet.zone_name().into() }
}

fn shown_image(image: &ImageCompare) -> MonitorImageCompare<'_> {
    let ImageCompare { threshold_ppm: _, ignore, ignore_areas, min_region_px } = image;
    let selectors = ignore.iter().map(|selector| MonitorIgnored::Selector(selector.into()));
    let areas = ignore_areas.iter().map(|Rectangle { x, y, width, height }| {
        MonitorIgnored::Area(MonitorArea { x: *x, y: *y, width: *width, height: *height })
    });
    MonitorImageCompare {
        threshold_ratio: image.threshold_ratio(),
        ignore: selectors.chain(areas).collect(),
        min_region_px: *min_region_px,
    }
}

fn shown_compare(compare: &Compare) -> MonitorCompare<'_> {
    let Compare { image, status, text, elements, baseline } = compare;
    MonitorCompare {
        image: image.as_ref().map(shown_image),
        status: *status,
        text: text.as_ref().map(|TextCompare { ignore_patterns }| MonitorTextCompare {
            ignore_patterns: ignore_patterns.iter().map(Into::into).collect(),
        }),
        elements: *elements,
        baseline: baseline.as_str().into(),
    }
}

/// The capture options that differ from their defaults, without secret ones.
fn capture_members(capture: &CaptureSpec) -> Map<String, Value> {
    let members = capture.shown_options();
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), serde_json::to_value(value).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grabd_domain::Timestamp;
    use grabd_domain::capture::{CaptureRequest, OptionValue, Secret};
    use grabd_domain::credentials::Principal;
    use grabd_domain::ids::{GrabId, KeyId, MonitorId, RunId, TeamId};
    use grabd_domain::monitor::{Change, MonitorRequest, MonitorState, Progress, RunOutcome};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn monitor() -> Monitor {
        let capture = CaptureRequest {
            url: Some("https://example.com/".into()),
            full_page: Some(true),
            headers: Some(Secret([("X-Token".to_owned(), OptionValue::Text("hidden".into()))].into())),
            ..CaptureRequest::default()
        };
        let request = MonitorRequest { capture: Some(capture), every: Some("1h".into()), ..MonitorRequest::default() };
        let id = MonitorId(Uuid::nil());
        let run = Run {
            id: RunId(Uuid::nil()),
            monitor: id,
            due_at: Timestamp::from_ms(0),
            outcome: RunOutcome::Changed,
            grab: Some(GrabId(Uuid::from_u128(2))),
            compared_to: Some(GrabId(Uuid::from_u128(1))),
            difference_ppm: Some(21_000),
            changes: vec![Change::Image, Change::Text],
            text_changes: vec![TextChange { before: None, after: Some("New".to_owned()) }],
            element_changes: vec![ElementChange::changed("button", "Order", "Buy", "Order")],
            is_alerted: true,
            finished_at: Some(Timestamp::from_ms(2000)),
            error: None,
        };
        Monitor {
            id,
            team: TeamId(Uuid::nil()),
            environment: Environment::Live,
            creator: Principal::Key(KeyId(Uuid::nil())),
            spec: MonitorSpec::parse(&request, Duration::ZERO).unwrap(),
            state: MonitorState::Active,
            progress: Progress::default(),
            created_at: Timestamp::from_ms(0),
            updated_at: Timestamp::from_ms(0),
            next_run_at: Some(Timestamp::from_ms(3_600_000)),
            baseline: run.grab,
            has_feed: false,
            last_run: Some(run),
        }
    }

    #[test]
    fn ignored_parts_and_quiet_hours_are_shown() {
        let mut monitor = monitor();
        let area = Rectangle { x: 0, y: 10, width: 300, height: 20 };
        let image = ImageCompare {
            ignore: vec![".ad".to_owned()],
            ignore_areas: vec![area],
            min_region_px: 400,
            ..ImageCompare::default()
        };
        monitor.spec.compare.image = Some(image);
        monitor.spec.quiet = Quiet::new(22 * 60, 7 * 60, "Europe/Vienna");
        let shown: Value = serde_json::from_str(&monitor_json(&monitor)).unwrap();
        let ignore = json!([".ad", { "x": 0, "y": 10, "width": 300, "height": 20 }]);
        assert_eq!(shown["compare"]["image"]["ignore"], ignore);
        assert_eq!(shown["compare"]["image"]["min_region_px"], 400);
        let quiet = json!({ "from": "22:00", "to": "07:00", "time_zone": "Europe/Vienna" });
        assert_eq!(shown["quiet"], quiet);
    }

    #[test]
    fn monitor_is_shown_with_its_defaults_and_without_secrets() {
        let json = monitor_json(&monitor());
        assert!(!json.contains("hidden") && !json.contains("headers"), "{json}");
        let shown: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(shown["capture"], json!({ "url": "https://example.com/", "full_page": true }));
        assert_eq!((&shown["every"], &shown["cron"], &shown["time_zone"]), (&json!("1h"), &Value::Null, &Value::Null));
        let image = json!({ "threshold_ratio": 0.001, "ignore": [], "min_region_px": 0 });
        let compare = json!({ "image": image, "status": false, "text": null, "elements": false, "baseline": "latest" });
        assert_eq!((&shown["compare"], &shown["quiet"]), (&compare, &Value::Null));
        assert_eq!(shown["notify"], json!({ "webhook": true, "email": true }));
        assert_eq!(shown["last_run"]["what_changed"], json!(["image", "text"]));
        assert_eq!(shown["last_run"]["text_changes"], json!([{ "before": null, "after": "New" }]));
        let element =
            json!({ "change": "changed", "role": "button", "name": "Order", "before": "Buy", "after": "Order" });
        assert_eq!(shown["last_run"]["element_changes"], json!([element]));
        assert_eq!(shown["last_run"]["difference_ratio"], json!(0.021));
        assert_eq!(shown["next_run_at"], "1970-01-01T01:00:00.000Z");
        assert_eq!(shown["live"], true);
    }
}
