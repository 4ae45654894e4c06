//! Monitors and their runs for display.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::GrabId;
use grabd_domain::monitor::{
    Baseline, Change, Compare, ElementChange, ElementChangeKind, ImageCompare, MAX_TEXT_CHANGES, Monitor, MonitorState,
    Notify, Quiet, Run, RunOutcome, Schedule,
};

use crate::environments::environment_name;
use crate::grabs::compare::MONITOR;
use crate::grabs::view::{capitalized, title};
use crate::team::TeamContext;
use crate::text_diff::RowView;
use crate::time_format::{Moment, time_until};

/// A monitor as a page shows it.
pub(super) struct MonitorView {
    pub(super) id: String,
    pub(super) name: String,
    /// The path of its page.
    pub(super) path: String,
    /// The URL of the page without its scheme, shortened.
    pub(super) target: String,
    pub(super) environment: &'static str,
    pub(super) is_live: bool,
    pub(super) schedule: String,
    /// What counts as a change.
    pub(super) compares: String,
    pub(super) alerts: String,
    pub(super) is_paused: bool,
    /// Whether its feed and badge have public addresses.
    pub(super) has_feed: bool,
    /// The CSS class of the state.
    pub(super) class: &'static str,
    /// The display name of the state.
    pub(super) state: &'static str,
    pub(super) sentence: &'static str,
    pub(super) created: Moment,
    /// The path of the capture that later ones are compared with.
    pub(super) baseline: Option<String>,
    pub(super) last: Option<RunView>,
    pub(super) next: Option<NextRun>,
}

/// The next run.
pub(super) struct NextRun {
    /// `in 5 minutes`
    pub(super) wait: String,
    pub(super) at: Moment,
}

/// A run as a page shows it.
pub(super) struct RunView {
    /// The CSS class of the outcome.
    pub(super) class: &'static str,
    pub(super) outcome: &'static str,
    pub(super) due: Moment,
    /// What it found, in a sentence.
    pub(super) summary: String,
    /// The lines in which the texts differ.
    pub(super) text_changes: Vec<RowView>,
    /// Whether further lines may differ, which were not kept.
    pub(super) has_more_text_changes: bool,
    /// The elements that differ.
    pub(super) element_changes: Vec<ElementChangeView>,
    /// The path of its capture.
    pub(super) capture: Option<String>,
    /// The path of the page with both images and the difference, if it was compared and both images still exist.
    pub(super) comparison: Option<String>,
    pub(super) is_alerted: bool,
    pub(super) is_open: bool,
    /// The id of its capture, if that shows a change, still has its image, and is not the baseline.
    pub(super) acceptable: Option<String>,
}

/// An element that differs, as a page shows it.
pub(super) struct ElementChangeView {
    /// `Added`
    pub(super) change: &'static str,
    pub(super) role: String,
    pub(super) name: String,
    pub(super) before: String,
    pub(super) after: String,
}

impl ElementChangeView {
    fn of(change: &ElementChange) -> Self {
        let ElementChange { kind, role, name, before, after } = change;
        Self {
            change: match kind {
                ElementChangeKind::Added => "Added",
                ElementChangeKind::Removed => "Removed",
                ElementChangeKind::Changed => "Changed",
                ElementChangeKind::Moved => "Moved",
            },
            role: role.clone(),
            name: name.clone(),
            before: before.clone().unwrap_or_default(),
            after: after.clone().unwrap_or_default(),
        }
    }
}

impl MonitorView {
    pub(super) fn of(monitor: &Monitor, at: &TeamContext, now: Timestamp) -> Self {
        let spec = &monitor.spec;
        let (class, state, sentence) = state_summary(monitor.state, monitor.environment);
        Self {
            id: monitor.id.to_string(),
            name: spec.name.clone(),
            path: at.monitor_path(monitor.id, ""),
            target: title(spec.capture.url.as_str()),
            environment: environment_name(monitor.environment),
            is_live: monitor.environment == Environment::Live,
            schedule: schedule_text(&spec.schedule),
            compares: compare_text(&spec.compare),
            alerts: alerts_text(spec.notify, spec.alert_after, spec.quiet.as_ref()),
            is_paused: monitor.state == MonitorState::Paused,
            has_feed: monitor.has_feed,
            class,
            state,
            sentence,
            created: monitor.created_at.into(),
            baseline: monitor.baseline.map(|grab| at.path(&format!("grabs/{grab}"))),
            // Pages show its outcome and time only, which need no image.
            last: monitor.last_run.as_ref().map(|run| RunView::of(run, monitor, at, &[])),
            next: monitor
                .next_run_at
                .filter(|_| monitor.state != MonitorState::Paused)
                .map(|next| NextRun { wait: time_until(next, now), at: next.into() }),
        }
    }
}

impl RunView {
    /// `with_image` are the grabs whose images still exist.
    pub(super) fn of(run: &Run, monitor: &Monitor, at: &TeamContext, with_image: &[GrabId]) -> Self {
        let is_done = matches!(run.outcome, RunOutcome::First | RunOutcome::Same | RunOutcome::Changed);
        let is_changed = run.outcome == RunOutcome::Changed;
        let grab = run.grab.filter(|grab| with_image.contains(grab));
        let earlier = run.compared_to.filter(|grab| with_image.contains(grab));
        let acceptable = grab.filter(|grab| is_changed && monitor.baseline != Some(*grab));
        let compared = grab.zip(earlier).filter(|_| is_done);
        Self {
            class: outcome_class(run.outcome),
            outcome: outcome_name(run.outcome),
            due: run.due_at.into(),
            summary: summary(run),
            text_changes: run.text_changes.iter().map(RowView::of_change).collect(),
            has_more_text_changes: run.text_changes.len() >= MAX_TEXT_CHANGES,
            element_changes: run.element_changes.iter().map(ElementChangeView::of).collect(),
            capture: run.grab.map(|grab| at.path(&format!("grabs/{grab}"))),
            comparison: compared.map(|(grab, earlier)| {
                at.path(&format!("grabs/compare?grab={earlier}&grab={grab}&{MONITOR}={}", run.monitor))
            }),
            is_alerted: run.is_alerted,
            is_open: run.outcome == RunOutcome::Running,
            acceptable: acceptable.map(|grab| grab.to_string()),
        }
    }
}

const fn state_summary(state: MonitorState, environment: Environment) -> (&'static str, &'static str, &'static str) {
    match (state, environment) {
        (MonitorState::Active, Environment::Live) => {
            ("done", "Active", "Captures the page by its schedule. Each capture costs 1 credit if it succeeds.")
        }
        (MonitorState::Active, Environment::Test) => {
            ("done", "Active", "Makes placeholders by its schedule. The page is not opened, and nothing is charged.")
        }
        (MonitorState::Paused, _) => ("deleted", "Paused", "Nothing is captured until you resume it."),
        (MonitorState::OutOfCredits, _) => {
            ("failed", "Out of credits", "Nothing is captured until the team has credits. It continues by itself then.")
        }
    }
}

/// The display name of an outcome.
pub(super) const fn outcome_name(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Running => "Running",
        RunOutcome::First => "First capture",
        RunOutcome::Same => "No change",
        RunOutcome::Changed => "Changed",
        RunOutcome::Failed => "Failed",
        RunOutcome::Missed => "Missed",
    }
}

const fn outcome_class(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Running => "open",
        RunOutcome::Changed => "changed",
        RunOutcome::First | RunOutcome::Same => "done",
        RunOutcome::Failed => "failed",
        RunOutcome::Missed => "deleted",
    }
}

/// What a run found, in sentences.
fn summary(run: &Run) -> String {
    let found = found(run);
    match (run.outcome, &run.error) {
        (RunOutcome::Same | RunOutcome::Changed, Some(error)) => format!("{found} {}", error.message),
        (_, _) => found,
    }
}

pub(super) fn found(run: &Run) -> String {
    let share = run.difference_ppm.map(|ppm| format!("{} of the image differs", share_text(ppm)));
    match run.outcome {
        RunOutcome::Running => "The page is being captured.".to_owned(),
        RunOutcome::First => "It became the baseline.".to_owned(),
        RunOutcome::Same => {
            share.map_or_else(|| "Nothing changed.".to_owned(), |share| format!("{}.", capitalized(&share)))
        }
        RunOutcome::Changed => {
            let others = run.changes.iter().filter_map(|change| match change {
                Change::Image => None,
                Change::Status => Some("the HTTP status has changed"),
                Change::Text => Some("the text has changed"),
                Change::Elements => Some("elements have changed"),
            });
            let parts: Vec<&str> = share.as_deref().into_iter().chain(others).collect();
            match parts.is_empty() {
                true => "The page changed.".to_owned(),
                false => format!("{}.", capitalized(&parts.join("; "))),
            }
        }
        RunOutcome::Failed | RunOutcome::Missed => match &run.error {
            Some(error) => error.message.clone(),
            None => "Nothing was captured.".to_owned(),
        },
    }
}

/// A part of an image, such as `2.1 %`. Rounded down, but never to nothing.
pub(super) fn share_text(ppm: u32) -> String {
    match ppm {
        0 => "0 %".to_owned(),
        1..1000 => "less than 0.1 %".to_owned(),
        1000.. => format!("{}.{} %", ppm / 10_000, ppm % 10_000 / 1000),
    }
}

/// A schedule in words, such as `Every 6 hours`.
pub(super) fn schedule_text(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Every(every) => every_text(&every.to_string()),
        Schedule::Cron(local) => format!("{} ({})", local.cron(), local.zone_name()),
    }
}

/// An interval in words.
pub(super) fn every_text(text: &str) -> String {
    let count = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.chars().last() {
        Some('m') => "minute",
        Some('h') => "hour",
        Some(_) | None => "day",
    };
    if count == "1" { format!("Every {unit}") } else { format!("Every {count} {unit}s") }
}

fn compare_text(compare: &Compare) -> String {
    let image = compare.image.as_ref().map(image_text);
    let status = compare.status.then(|| "the HTTP status".to_owned());
    let text = compare.text.as_ref().map(|text| match text.ignore_patterns.len() {
        0 => "the text".to_owned(),
        1 => "the text, without 1 pattern".to_owned(),
        count => format!("the text, without {count} patterns"),
    });
    let elements = compare.elements.then(|| "the elements".to_owned());
    let parts: Vec<String> = image.into_iter().chain(status).chain(text).chain(elements).collect();
    let with = match compare.baseline {
        Baseline::Latest => "",
        Baseline::Accepted => "; with the accepted capture",
    };
    capitalized(&format!("{}{with}", parts.join(", and ")))
}

/// How images are compared.
fn image_text(image: &ImageCompare) -> String {
    let threshold = match image.threshold_ppm {
        0 => "the image, any change".to_owned(),
        ppm => format!("the image, from {} %", f64::from(ppm) / 10_000.0),
    };
    let without = |count: usize, one: &str, many: &str| match count {
        0 => String::new(),
        1 => format!(", without 1 {one}"),
        count => format!(", without {count} {many}"),
    };
    let elements = without(image.ignore.len(), "element", "elements");
    let areas = without(image.ignore_areas.len(), "rectangle", "rectangles");
    let regions = match image.min_region_px {
        0 => String::new(),
        pixels => format!(", regions of at least {pixels} pixels"),
    };
    format!("{threshold}{elements}{areas}{regions}")
}

fn alerts_text(notify: Notify, alert_after: u32, quiet: Option<&Quiet>) -> String {
    let ways = ways_text(notify, alert_after);
    match quiet {
        Some(quiet) if notify.webhook || notify.email => {
            format!("{ways}; not from {} to {} ({})", quiet.from(), quiet.to(), quiet.zone_name())
        }
        Some(_) | None => ways,
    }
}

fn ways_text(Notify { webhook, email }: Notify, alert_after: u32) -> String {
    let ways = match (webhook, email) {
        (true, true) => "By webhook and e-mail",
        (true, false) => "By webhook",
        (false, true) => "By e-mail",
        (false, false) => return "None".to_owned(),
    };
    match alert_after {
        0 | 1 => ways.to_owned(),
        count => format!("{ways}, after {count} captures in a row that differ"),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::Rectangle;
    use grabd_domain::ids::{GrabId, MonitorId, RunId};
    use grabd_domain::monitor::{Cron, Every, LocalCron, RunError, TextCompare};

    use super::*;

    const ID: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

    fn run(outcome: RunOutcome, difference_ppm: Option<u32>, changes: &[Change], error: Option<RunError>) -> Run {
        Run {
            id: ID.parse::<RunId>().unwrap(),
            monitor: ID.parse::<MonitorId>().unwrap(),
            due_at: Timestamp::from_ms(0),
            outcome,
            grab: Some(ID.parse::<GrabId>().unwrap()),
            compared_to: None,
            difference_ppm,
            changes: changes.to_vec(),
            text_changes: Vec::new(),
            element_changes: Vec::new(),
            is_alerted: false,
            finished_at: None,
            error,
        }
    }

    #[test]
    fn every_outcome_has_a_sentence() {
        use RunOutcome::{Changed, Failed, First, Missed, Running, Same};
        let error = Some(RunError::new("render_failed", &"The page did not load."));
        for (outcome, ppm, changes, error, expected) in [
            (Running, None, &[][..], None, "The page is being captured."),
            (First, None, &[], None, "It became the baseline."),
            (Same, None, &[], None, "Nothing changed."),
            (Same, Some(7), &[], None, "Less than 0.1 % of the image differs."),
            (Changed, Some(21_999), &[Change::Image], None, "2.1 % of the image differs."),
            (
                Changed,
                Some(21_999),
                &[Change::Image, Change::Status],
                None,
                "2.1 % of the image differs; the HTTP status has changed.",
            ),
            (Changed, None, &[Change::Status], None, "The HTTP status has changed."),
            (Changed, Some(9), &[Change::Text], None, "Less than 0.1 % of the image differs; the text has changed."),
            (Changed, None, &[Change::Elements], None, "Elements have changed."),
            (Same, None, &[], error.clone(), "Nothing changed. The page did not load."),
            (Failed, None, &[], error, "The page did not load."),
            (Missed, None, &[], None, "Nothing was captured."),
        ] {
            assert_eq!(summary(&run(outcome, ppm, changes, error)), expected, "{outcome:?}");
        }
    }

    #[test]
    fn schedules_are_words() {
        for (text, expected) in
            [("1h", "Every hour"), ("6h", "Every 6 hours"), ("90m", "Every 90 minutes"), ("1d", "Every day")]
        {
            assert_eq!(schedule_text(&Schedule::Every(Every::parse(text).unwrap())), expected);
        }
        let cron = LocalCron::new(Cron::parse("0 8 * * 1-5").unwrap(), "Europe/Vienna").unwrap();
        assert_eq!(schedule_text(&Schedule::Cron(cron)), "0 8 * * 1-5 (Europe/Vienna)");
    }

    #[test]
    fn what_is_compared_is_words() {
        assert_eq!(compare_text(&Compare::default()), "The image, from 0.1 %");
        let ignore = vec![".a".to_owned(), ".b".to_owned()];
        let image = ImageCompare { threshold_ppm: 0, ignore, ..ImageCompare::default() };
        let compare = Compare { image: Some(image), status: true, baseline: Baseline::Accepted, ..Compare::default() };
        let expected = "The image, any change, without 2 elements, and the HTTP status; with the accepted capture";
        assert_eq!(compare_text(&compare), expected);
        let text = TextCompare { ignore_patterns: vec!["a".to_owned()] };
        let compare = Compare { image: None, text: Some(text), ..Compare::default() };
        assert_eq!(compare_text(&compare), "The text, without 1 pattern");
        let image =
            ImageCompare { ignore_areas: vec![Rectangle::default()], min_region_px: 400, ..ImageCompare::default() };
        let compare = Compare { image: Some(image), elements: true, ..Compare::default() };
        let expected = "The image, from 0.1 %, without 1 rectangle, regions of at least 400 pixels, and the elements";
        assert_eq!(compare_text(&compare), expected);
        let webhook = Notify { webhook: true, email: false };
        assert_eq!(alerts_text(webhook, 3, None), "By webhook, after 3 captures in a row that differ");
        let night = Quiet::new(22 * 60, 7 * 60, "UTC");
        assert_eq!(alerts_text(webhook, 1, night.as_ref()), "By webhook; not from 22:00 to 07:00 (UTC)");
        assert_eq!(alerts_text(Notify { webhook: false, email: false }, 3, night.as_ref()), "None");
    }
}
