//! Validation of requests to create or change a monitor.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::compare::Compare;
use super::compare_request::{BASELINE, CompareRequest, IGNORED, RATIO, REGION_PIXELS, check, hidden};
use super::cron::Cron;
use super::quiet::{Quiet, QuietRequest};
use super::schedule::{Every, LocalCron, Schedule};
use super::text::PATTERNS;
use crate::capture::{CaptureRequest, CaptureSpec, Class, Content, FileKind, Tolerance};
use crate::faults::{Fault, Field};
use crate::ids::GrabId;

/// The longest name, in characters.
pub const NAME_CHARS: usize = 100;
/// How many runs are kept.
pub const KEEP: RangeInclusive<u32> = 1..=1000;
/// The number of kept runs of a request that names none.
const DEFAULT_KEEP: u32 = 100;
/// After how many runs in a row that differ there may be an alert.
const ALERT_AFTER: RangeInclusive<u32> = 1..=10;

/// An unvalidated request to create or change a monitor. Absent members have their defaults, or are not changed.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names of the API")]
pub struct MonitorRequest {
    pub name: Option<String>,
    pub capture: Option<CaptureRequest>,
    pub every: Option<String>,
    pub cron: Option<String>,
    pub time_zone: Option<String>,
    pub compare: Option<CompareRequest>,
    pub alert_after: Option<i64>,
    pub notify: Option<NotifyRequest>,
    pub keep: Option<i64>,
    /// Without any member, there are none.
    pub quiet: Option<QuietRequest>,
    /// Only of a change. A new monitor is never paused.
    pub paused: Option<bool>,
    /// Members of the wrong type: their path, and the received value.
    pub unparsed: Vec<(String, String)>,
}

/// How alerts are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the API")]
pub struct NotifyRequest {
    pub webhook: Option<bool>,
    pub email: Option<bool>,
}

/// How alerts are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notify {
    /// By webhooks.
    pub webhook: bool,
    /// By e-mail.
    pub email: bool,
}

impl Default for Notify {
    fn default() -> Self {
        Self { webhook: true, email: true }
    }
}

/// What a monitor does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorSpec {
    /// Its name, for people.
    pub name: String,
    /// What it captures.
    pub capture: CaptureSpec,
    /// When.
    pub schedule: Schedule,
    /// What counts as a change.
    pub compare: Compare,
    /// After how many runs in a row that differ there is an alert.
    pub alert_after: u32,
    /// How alerts are sent.
    pub notify: Notify,
    /// How many runs are kept.
    pub keep: u32,
    /// When no alerts are sent. `None`: they are sent at any time.
    pub quiet: Option<Quiet>,
}

/// A valid change. `None` members are not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members of the monitor")]
pub struct MonitorChange {
    pub name: Option<String>,
    pub capture: Option<CaptureSpec>,
    pub schedule: Option<Schedule>,
    pub compare: Option<Compare>,
    pub alert_after: Option<u32>,
    pub notify: Option<Notify>,
    pub keep: Option<u32>,
    /// `Some(None)`: there are none any more.
    pub quiet: Option<Option<Quiet>>,
    /// Whether it is paused.
    pub is_paused: Option<bool>,
}

/// The paths of members that may have the wrong type, in the order in which they are reported, and what they must be.
const MEMBERS: [(&str, Option<&str>, &str); 25] = [
    ("body", None, BODY),
    ("name", None, "a string of 1 to 100 characters"),
    ("capture", None, CAPTURE),
    ("every", None, "a string, such as \"1h\""),
    ("cron", None, "a string of five fields, such as \"0 9 * * 1-5\""),
    ("time_zone", None, ZONE),
    ("compare", None, "an object with some of `image`, `status`, `text`, `elements` and `baseline`"),
    ("compare", Some("image"), "null, or an object with some of `threshold_ratio`, `ignore` and `min_region_px`"),
    ("compare", Some("image.threshold_ratio"), RATIO),
    ("compare", Some("image.ignore"), IGNORED),
    ("compare", Some("image.min_region_px"), REGION_PIXELS),
    ("compare", Some("status"), "true or false"),
    ("compare", Some("text"), "null, or an object with `ignore_patterns` or without members"),
    ("compare", Some("text.selector"), "left out: the text of the whole page is compared"),
    ("compare", Some("text.ignore_patterns"), PATTERNS),
    ("compare", Some("elements"), "true or false"),
    ("compare", Some("baseline"), BASELINE),
    ("alert_after", None, "an integer from 1 to 10"),
    ("notify", None, "an object with some of `webhook` and `email`, which are true or false"),
    ("keep", None, "an integer from 1 to 1000"),
    ("quiet", None, QUIET),
    ("quiet", Some("from"), QUIET_TIME),
    ("quiet", Some("to"), QUIET_TIME),
    ("quiet", Some("time_zone"), ZONE),
    ("paused", None, "true or false"),
];

const BODY: &str = "a JSON object with some of `name`, `capture`, `every`, `cron`, `time_zone`, `compare`, `alert_after`, `notify`, \
                    `keep`, `quiet` and `paused`";
const QUIET: &str = "null, or an object with `from` and `to`, such as \"22:00\" and \"07:00\", and perhaps `time_zone`";
const QUIET_TIME: &str = "a time of day from 00:00 to 23:59, and `from` another one than `to`";
const CAPTURE: &str = "an object with capture options, of which `url` or `html` is required";
const ZONE: &str = "the name of an IANA time zone, such as \"Europe/Berlin\"";

impl MonitorSpec {
    /// Validates a request to create a monitor, whose runs are at least `shortest` apart.
    ///
    /// # Errors
    /// The first invalid member.
    pub fn parse(request: &MonitorRequest, shortest: Duration) -> Result<Self, Fault> {
        check_types(request)?;
        // It would run, and spend credits, although the caller has asked for the contrary.
        if request.paused == Some(true) {
            return Err(bad("paused", "true", "left out of a new monitor, which can be paused once it exists"));
        }
        let capture = request.capture.as_ref().ok_or_else(|| bad("capture", "", CAPTURE))?;
        let capture = parse_capture(capture)?;
        let name = match &request.name {
            Some(name) => parse_name(name)?,
            None => capture.url.host().to_string().chars().take(NAME_CHARS).collect(),
        };
        let schedule = parse_schedule(request, None, shortest)?
            .ok_or_else(|| bad("every", "", format!("present, unless `cron` is: {}", every_allowed(shortest))))?;
        let compare = request.compare.as_ref().map_or(Ok(Compare::default()), CompareRequest::parse)?;
        check(&capture, &compare)?;
        let quiet = parse_quiet(request.quiet.as_ref(), &schedule)?;
        Ok(Self {
            name,
            capture,
            schedule,
            compare,
            alert_after: number("alert_after", request.alert_after, &ALERT_AFTER)?.unwrap_or(*ALERT_AFTER.start()),
            notify: notify(request.notify, Notify::default()),
            keep: number("keep", request.keep, &KEEP)?.unwrap_or(DEFAULT_KEEP),
            quiet: quiet.flatten(),
        })
    }

    /// What a run captures: the capture, without the elements that are ignored, compared with the baseline. If texts are compared,
    /// that of the whole page is made, unless the capture asks for a text itself.
    pub fn run_request(&self, baseline: Option<GrabId>) -> CaptureRequest {
        let unknown = self.capture.unknown.clone();
        let mut request = CaptureRequest { unknown, ..self.capture.to_minimal_request() };
        if let Some(image) = &self.compare.image {
            if !image.ignore.is_empty() {
                request.hide = Some(hidden(request.hide.unwrap_or_default(), &image.ignore));
            }
            request.compare_to = baseline.map(|grab| grab.to_string());
        }
        let has = |kind: FileKind| self.capture.also.contains(&kind);
        let needed = [(self.compare.text.is_some(), FileKind::Text), (self.compare.elements, FileKind::Elements)];
        let missing = needed.into_iter().filter(|(is_needed, kind)| *is_needed && !has(*kind));
        let missing: Vec<String> = missing.map(|(_, kind)| kind.as_str().to_owned()).collect();
        if !missing.is_empty() {
            request.also.get_or_insert_default().extend(missing);
        }
        if self.compare.text.is_some() && !has(FileKind::Text) && !has(FileKind::Markdown) {
            request.content = Some(Content::Page.as_str().to_owned());
        }
        request
    }

    /// What does not count when the image of a run is compared.
    pub fn tolerance(&self) -> Tolerance {
        match &self.compare.image {
            Some(image) => Tolerance { ignored: image.ignore_areas.clone(), min_region_px: image.min_region_px },
            None => Tolerance::default(),
        }
    }
}

impl MonitorChange {
    /// Validates a change of a monitor.
    ///
    /// # Errors
    /// As [`MonitorSpec::parse`].
    pub fn parse(request: &MonitorRequest, current: &MonitorSpec, shortest: Duration) -> Result<Self, Fault> {
        check_types(request)?;
        let capture = request.capture.as_ref().map(parse_capture).transpose()?;
        let compare = request.compare.as_ref().map(CompareRequest::parse).transpose()?;
        if capture.is_some() || compare.is_some() {
            let capture = capture.as_ref().unwrap_or(&current.capture);
            let compare = compare.as_ref().unwrap_or(&current.compare);
            check(capture, compare)?;
        }
        let name = request.name.as_deref().map(parse_name).transpose()?;
        let schedule = parse_schedule(request, Some(&current.schedule), shortest)?;
        let quiet = parse_quiet(request.quiet.as_ref(), schedule.as_ref().unwrap_or(&current.schedule))?;
        Ok(Self {
            name,
            capture,
            // Forms send all members. The one that a monitor has already does not begin again.
            schedule: schedule.filter(|schedule| *schedule != current.schedule),
            compare,
            alert_after: number("alert_after", request.alert_after, &ALERT_AFTER)?,
            notify: request.notify.map(|given| notify(Some(given), current.notify)),
            keep: number("keep", request.keep, &KEEP)?,
            quiet: quiet.filter(|quiet| *quiet != current.quiet),
            is_paused: request.paused,
        })
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

pub(super) fn bad(name: &'static str, seen: &str, allowed: impl Into<String>) -> Fault {
    Fault::BadRequest(Field::new(name, seen, allowed))
}

fn check_types(request: &MonitorRequest) -> Result<(), Fault> {
    for (name, member, allowed) in MEMBERS {
        let field = |seen: &str| Field::new(name, seen, allowed).in_member(member);
        let path = field("").path();
        if let Some((_, seen)) = request.unparsed.iter().find(|(of, _)| *of == path) {
            return Err(Fault::BadRequest(field(seen)));
        }
    }
    Ok(())
}

/// Options that would not make one new image for each run.
pub(super) fn parse_capture(request: &CaptureRequest) -> Result<CaptureSpec, Fault> {
    let capture = CaptureSpec::parse(request)?;
    capture.check_class(Class::Async)?;
    let left_out = "left out of the capture of a monitor";
    if let Some(earlier) = capture.compare_to {
        return Err(bad("compare_to", &format!("\"{earlier}\""), format!("{left_out}, which has its own baseline")));
    }
    if !capture.max_age.is_zero() {
        return Err(bad(
            "max_age",
            &capture.max_age.as_secs().to_string(),
            format!("{left_out}: each run is a new one"),
        ));
    }
    if capture.secrets.given().contains(&"upload_url") {
        return Err(bad("upload_url", "", format!("{left_out}: it would be overwritten by each run")));
    }
    Ok(capture)
}

fn parse_name(text: &str) -> Result<String, Fault> {
    let name = text.trim();
    let is_valid = (1..=NAME_CHARS).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if is_valid { Ok(name.to_owned()) } else { Err(bad("name", text, "a text of 1 to 100 characters in one line")) }
}

fn every_allowed(shortest: Duration) -> String {
    format!("an integer and `m`, `h` or `d`, from {}m to 30d", shortest.as_secs() / 60)
}

fn parse_schedule(
    request: &MonitorRequest,
    current: Option<&Schedule>,
    shortest: Duration,
) -> Result<Option<Schedule>, Fault> {
    let zone = match &request.time_zone {
        Some(zone) if !LocalCron::has_zone(zone) => return Err(bad("time_zone", &format!("\"{zone}\""), ZONE)),
        zone => zone.as_deref(),
    };
    let current = current.and_then(|current| match current {
        Schedule::Every(_) => None,
        Schedule::Cron(cron) => Some(cron),
    });
    let cron = match (&request.every, &request.cron) {
        (Some(_), Some(cron)) => return Err(bad("cron", &format!("\"{cron}\""), "left out where `every` is used")),
        (Some(every), None) => {
            if let Some(zone) = zone {
                return Err(bad("time_zone", &format!("\"{zone}\""), "left out where `cron` is not used"));
            }
            let parsed = Every::parse(every).filter(|every| every.length() >= shortest);
            let refused = || bad("every", &format!("\"{every}\""), every_allowed(shortest));
            return parsed.map(|every| Some(Schedule::Every(every))).ok_or_else(refused);
        }
        (None, Some(cron)) => parse_cron(cron, shortest)?,
        (None, None) => match (zone, current) {
            (None, _) => return Ok(None),
            (Some(_), Some(current)) => current.cron().clone(),
            (Some(zone), None) => {
                return Err(bad("time_zone", &format!("\"{zone}\""), "left out where `cron` is not used"));
            }
        },
    };
    let text = cron.to_string();
    let zone = zone.or(current.map(LocalCron::zone_name)).unwrap_or(LocalCron::UTC);
    let local = LocalCron::new(cron, zone).ok_or_else(|| bad("cron", &format!("\"{text}\""), "a time that exists"))?;
    Ok(Some(Schedule::Cron(local)))
}

fn parse_cron(text: &str, shortest: Duration) -> Result<Cron, Fault> {
    let seen = format!("\"{text}\"");
    let fields = "five fields: minute, hour, day of the month, month and day of the week, such as \"0 9 * * 1-5\"";
    let cron = Cron::parse(text).ok_or_else(|| bad("cron", &seen, fields))?;
    if cron.shortest_gap() < shortest {
        let minutes = shortest.as_secs() / 60;
        return Err(bad("cron", &seen, format!("an expression with at least {minutes} minutes between two runs")));
    }
    Ok(cron)
}

/// `Some(None)`: there are no quiet hours. Without a time zone, they have that of the schedule.
fn parse_quiet(request: Option<&QuietRequest>, schedule: &Schedule) -> Result<Option<Option<Quiet>>, Fault> {
    let Some(request) = request else { return Ok(None) };
    let QuietRequest { from, to, time_zone } = request;
    if (from, to, time_zone) == (&None, &None, &None) {
        return Ok(Some(None));
    }
    let refused =
        |member, seen: &str, allowed| Fault::BadRequest(Field::new("quiet", seen, allowed).in_member(Some(member)));
    let time = |member, text: &Option<String>| {
        let parsed = text.as_deref().and_then(Quiet::parse_time);
        parsed.ok_or_else(|| {
            refused(member, &text.as_ref().map_or(String::new(), |text| format!("\"{text}\"")), QUIET_TIME)
        })
    };
    let (start, end) = (time("from", from)?, time("to", to)?);
    if start == end {
        return Err(refused("to", &format!("\"{}\"", to.as_deref().unwrap_or_default()), QUIET_TIME));
    }
    let zone = match (time_zone, schedule) {
        (Some(zone), _) => zone.as_str(),
        (None, Schedule::Cron(cron)) => cron.zone_name(),
        (None, Schedule::Every(_)) => LocalCron::UTC,
    };
    let quiet = Quiet::new(start, end, zone).ok_or_else(|| refused("time_zone", &format!("\"{zone}\""), ZONE))?;
    Ok(Some(Some(quiet)))
}

fn number(name: &'static str, given: Option<i64>, range: &RangeInclusive<u32>) -> Result<Option<u32>, Fault> {
    let Some(given) = given else { return Ok(None) };
    let allowed = || format!("an integer from {} to {}", range.start(), range.end());
    let number = u32::try_from(given).ok().filter(|number| range.contains(number));
    number.map(Some).ok_or_else(|| bad(name, &given.to_string(), allowed()))
}

fn notify(given: Option<NotifyRequest>, current: Notify) -> Notify {
    let NotifyRequest { webhook, email } = given.unwrap_or_default();
    Notify { webhook: webhook.unwrap_or(current.webhook), email: email.unwrap_or(current.email) }
}

#[cfg(test)]
mod tests;
