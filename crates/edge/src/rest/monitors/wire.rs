//! JSON representation of monitors and runs: see `grabd_api`.

use std::borrow::Cow;

use grabd_api::{
    Monitor, MonitorArea, MonitorCompare, MonitorElementChange, MonitorIgnored, MonitorImageCompare, MonitorNotify,
    MonitorQuiet, MonitorRun, MonitorRunError, MonitorTextChange, MonitorTextCompare,
};
use grabd_options::TABLE;
use grabd_proto::{options, v1};
use serde_json::{Map, Value};

use super::super::wire::{borrowed, time};

/// Converts a monitor. `None` if a required field is missing.
pub(crate) fn monitor(monitor: &v1::Monitor) -> Option<Monitor<'_>> {
    let v1::Monitor {
        id,
        live,
        name,
        capture,
        every,
        cron,
        time_zone,
        compare,
        alert_after,
        notify,
        keep,
        state,
        created_at,
        updated_at,
        next_run_at,
        baseline_grab_id,
        last_run,
        quiet,
        has_feed,
    } = monitor;
    let v1::MonitorNotify { webhook, email } = *notify.as_ref()?;
    Some(Monitor {
        id: id.into(),
        name: name.into(),
        capture: capture_members(capture.as_ref()?),
        every: borrowed(every),
        cron: borrowed(cron),
        time_zone: borrowed(time_zone),
        compare: shown_compare(compare.as_ref()?)?,
        alert_after: u32::try_from(*alert_after).ok()?,
        notify: MonitorNotify { webhook: webhook?, email: email? },
        keep: u32::try_from(*keep).ok()?,
        quiet: match quiet {
            Some(quiet) => Some(quiet_hours(quiet)?),
            None => None,
        },
        state: state.into(),
        created_at: time(created_at.as_ref()?)?,
        updated_at: time(updated_at.as_ref()?)?,
        next_run_at: next_run_at.as_ref().and_then(time),
        baseline_grab_id: borrowed(baseline_grab_id),
        last_run: match last_run {
            Some(last_run) => Some(run(last_run)?),
            None => None,
        },
        live: *live,
        has_feed: *has_feed,
    })
}

/// Converts a run. `None` if a required field is missing.
pub(crate) fn run(run: &v1::MonitorRun) -> Option<MonitorRun<'_>> {
    let v1::MonitorRun {
        id,
        due_at,
        outcome,
        grab_id,
        compared_to,
        difference_ratio,
        what_changed,
        alerted,
        finished_at,
        error,
        text_changes,
        element_changes,
    } = run;
    Some(MonitorRun {
        id: id.into(),
        due_at: time(due_at.as_ref()?)?,
        outcome: outcome.into(),
        grab_id: borrowed(grab_id),
        compared_to: borrowed(compared_to),
        difference_ratio: *difference_ratio,
        what_changed: what_changed.iter().map(Cow::from).collect(),
        text_changes: text_changes.iter().map(text_change).collect(),
        element_changes: element_changes.iter().map(element_change).collect(),
        alerted: *alerted,
        finished_at: finished_at.as_ref().and_then(time),
        error: error.as_ref().map(|v1::MonitorRunError { code, message }| MonitorRunError {
            code: code.into(),
            message: message.into(),
        }),
    })
}

fn text_change(change: &v1::MonitorTextChange) -> MonitorTextChange<'_> {
    let v1::MonitorTextChange { before, after } = change;
    MonitorTextChange { before: borrowed(before), after: borrowed(after) }
}

fn element_change(change: &v1::MonitorElementChange) -> MonitorElementChange<'_> {
    let v1::MonitorElementChange { change, role, name, before, after } = change;
    MonitorElementChange {
        change: change.into(),
        role: role.into(),
        name: name.into(),
        before: borrowed(before),
        after: borrowed(after),
    }
}

fn quiet_hours(quiet: &v1::MonitorQuiet) -> Option<MonitorQuiet<'_>> {
    let v1::MonitorQuiet { from, to, time_zone } = quiet;
    Some(MonitorQuiet { from: from.as_ref()?.into(), to: to.as_ref()?.into(), time_zone: time_zone.as_ref()?.into() })
}

fn shown_image(image: &v1::MonitorImageCompare) -> Option<MonitorImageCompare<'_>> {
    let v1::MonitorImageCompare { threshold_ratio, ignore, ignore_areas, min_region_px } = image;
    let selectors = ignore.iter().map(|selector| MonitorIgnored::Selector(selector.into()));
    let areas = ignore_areas.iter().map(|v1::MonitorArea { x, y, width, height }| {
        MonitorIgnored::Area(MonitorArea {
            x: (*x).into(),
            y: (*y).into(),
            width: (*width).into(),
            height: (*height).into(),
        })
    });
    Some(MonitorImageCompare {
        threshold_ratio: (*threshold_ratio)?,
        ignore: selectors.chain(areas).collect(),
        min_region_px: u32::try_from((*min_region_px)?).ok()?,
    })
}

fn shown_compare(compare: &v1::MonitorCompare) -> Option<MonitorCompare<'_>> {
    let v1::MonitorCompare { image, status, baseline, text, elements } = compare;
    let image = match image {
        Some(image) => Some(shown_image(image)?),
        None => None,
    };
    let text = text.as_ref().map(|v1::MonitorTextCompare { ignore_patterns }| MonitorTextCompare {
        ignore_patterns: ignore_patterns.iter().map(Cow::from).collect(),
    });
    Some(MonitorCompare {
        image,
        status: (*status)?,
        text,
        elements: (*elements)?,
        baseline: baseline.as_ref()?.into(),
    })
}

/// The capture options that are set.
fn capture_members(capture: &v1::CaptureOptions) -> Map<String, Value> {
    let request = options::decode(capture.clone(), Vec::new());
    let members = TABLE.iter().filter(|option| !option.is_secret).filter_map(|option| {
        let value = serde_json::to_value(request.get(option.name)?).ok()?;
        Some((option.name.to_owned(), value))
    });
    members.collect()
}
