//! The form fields of a monitor: rendering, parsing and error messages. The options of its capture are those of `grabs/options`.

use grabd_domain::Fault;
use grabd_domain::capture::Rectangle;
use grabd_domain::faults::Field;
use grabd_domain::monitor::{
    Baseline, CRON_CHARS, CompareRequest, Every, ImageCompareRequest, KEEP, MAX_PATTERNS, MAX_REGION_PX, Monitor,
    MonitorRequest, NAME_CHARS, NotifyRequest, PATTERN_CHARS, Quiet, QuietRequest, Schedule, TextCompareRequest,
};

use super::view::every_text;
use crate::form::{FieldError, Form};
use crate::grabs::options::{self, Text};

const NAME: &str = "name";
const EVERY: &str = "every";
const CRON: &str = "cron";
const TIME_ZONE: &str = "time_zone";
const THRESHOLD: &str = "threshold";
const IGNORE: &str = "ignore";
const MIN_REGION: &str = "min_region_px";
const COMPARE_IMAGE: &str = "compare_image";
const COMPARE_STATUS: &str = "compare_status";
const COMPARE_TEXT: &str = "compare_text";
const COMPARE_ELEMENTS: &str = "compare_elements";
const IGNORE_PATTERNS: &str = "ignore_patterns";
const BASELINE: &str = "baseline";
const ALERT_AFTER: &str = "alert_after";
const NOTIFY_WEBHOOK: &str = "notify_webhook";
const NOTIFY_EMAIL: &str = "notify_email";
const KEEP_RUNS: &str = "keep";
const QUIET_FROM: &str = "quiet_from";
const QUIET_TO: &str = "quiet_to";
const QUIET_ZONE: &str = "quiet_zone";

/// The value of the interval if a cron expression is used.
const BY_CRON: &str = "cron";
/// The intervals to choose from.
const INTERVALS: [&str; 9] = ["5m", "15m", "30m", "1h", "3h", "6h", "12h", "1d", "7d"];
/// The numbers of captures in a row to choose from.
const ALERTS_AFTER: [&str; 5] = ["1", "2", "3", "5", "10"];
/// The longest name of a time zone.
const TIME_ZONE_CHARS: usize = 64;
/// The most characters of the selectors of ignored elements.
const IGNORE_CHARS: usize = 4096;
/// The most characters of the patterns of ignored text, with line breaks.
const PATTERNS_CHARS: usize = MAX_PATTERNS * (PATTERN_CHARS + 2);

/// The fields, with their values.
pub(super) struct Fields {
    pub(super) name: Text,
    pub(super) every: Select,
    pub(super) cron: Text,
    pub(super) time_zone: Text,
    pub(super) compare_image: Check,
    pub(super) threshold: Text,
    pub(super) ignore: Text,
    pub(super) min_region: Text,
    pub(super) compare_status: Check,
    pub(super) compare_text: Check,
    pub(super) compare_elements: Check,
    pub(super) ignore_patterns: Text,
    pub(super) compare_error: Option<String>,
    pub(super) baseline: Select,
    pub(super) alert_after: Select,
    pub(super) notify_webhook: Check,
    pub(super) notify_email: Check,
    pub(super) keep: Text,
    pub(super) quiet_from: Text,
    pub(super) quiet_to: Text,
    pub(super) quiet_zone: Text,
}

/// A field with one of some values.
pub(super) struct Select {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) choices: Vec<Choice>,
    pub(super) error: Option<String>,
}

/// A value to choose.
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) text: String,
    pub(super) is_chosen: bool,
}

/// A check box.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) is_checked: bool,
}

/// What the form of a new monitor has besides the options of the capture.
pub(super) const DEFAULTS: [(&str, &str); 8] = [
    (EVERY, "1d"),
    (COMPARE_IMAGE, "true"),
    (THRESHOLD, "0.1"),
    (BASELINE, Baseline::Latest.as_str()),
    (ALERT_AFTER, "1"),
    (NOTIFY_WEBHOOK, "true"),
    (NOTIFY_EMAIL, "true"),
    (KEEP_RUNS, "100"),
];

/// The fields of an existing monitor, with the options of its capture.
pub(super) fn form_of(monitor: &Monitor) -> Form {
    let spec = &monitor.spec;
    let capture = Form::parse(options::to_query(&spec.capture, monitor.environment).as_bytes());
    let image = spec.compare.image.as_ref();
    let threshold = image.map_or(String::new(), |image| (f64::from(image.threshold_ppm) / 10_000.0).to_string());
    let ignore = image.map_or(String::new(), |image| {
        let areas = image.ignore_areas.iter().map(Rectangle::to_text);
        image.ignore.iter().cloned().chain(areas).collect::<Vec<_>>().join("\n")
    });
    let min_region = image.map(|image| image.min_region_px).filter(|pixels| *pixels > 0);
    let min_region = min_region.map_or(String::new(), |pixels| pixels.to_string());
    let quiet = spec.quiet.as_ref();
    let (quiet_from, quiet_to) = (quiet.map_or(String::new(), Quiet::from), quiet.map_or(String::new(), Quiet::to));
    let patterns = spec.compare.text.as_ref().map_or(String::new(), |text| text.ignore_patterns.join("\n"));
    let (every, cron, zone) = match &spec.schedule {
        Schedule::Every(every) => (every.to_string(), String::new(), ""),
        Schedule::Cron(local) => (BY_CRON.to_owned(), local.cron().to_string(), local.zone_name()),
    };
    let (alert_after, keep) = (spec.alert_after.to_string(), spec.keep.to_string());
    let mut pairs: Vec<(&str, &str)> = vec![
        (NAME, spec.name.as_str()),
        (EVERY, every.as_str()),
        (CRON, cron.as_str()),
        (TIME_ZONE, zone),
        (THRESHOLD, threshold.as_str()),
        (IGNORE, ignore.as_str()),
        (MIN_REGION, min_region.as_str()),
        (IGNORE_PATTERNS, patterns.as_str()),
        (BASELINE, spec.compare.baseline.as_str()),
        (ALERT_AFTER, alert_after.as_str()),
        (KEEP_RUNS, keep.as_str()),
        (QUIET_FROM, quiet_from.as_str()),
        (QUIET_TO, quiet_to.as_str()),
        (QUIET_ZONE, quiet.map_or("", Quiet::zone_name)),
    ];
    let checks = [
        (COMPARE_IMAGE, image.is_some()),
        (COMPARE_STATUS, spec.compare.status),
        (COMPARE_TEXT, spec.compare.text.is_some()),
        (COMPARE_ELEMENTS, spec.compare.elements),
        (NOTIFY_WEBHOOK, spec.notify.webhook),
        (NOTIFY_EMAIL, spec.notify.email),
    ];
    pairs.extend(checks.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (name, "true")));
    pairs.extend(capture.fields().iter().map(|(name, value)| (name.as_str(), value.as_str())));
    pairs.into_iter().collect()
}

impl Fields {
    /// The fields of a form, with their errors.
    pub(super) fn of(input: &Form, errors: &[FieldError]) -> Self {
        let error = |name| {
            let own = errors.iter().find(|field_error| field_error.field == name);
            own.map(|field_error| field_error.message.clone())
        };
        let text = |name, label, hint: String, max_length| Text {
            name,
            label,
            hint,
            placeholder: "",
            max_length,
            input_mode: "text",
            is_required: false,
            value: input.get(name).to_owned(),
            error: error(name),
        };
        let check = |name, label| Check { name, label, is_checked: input.get(name) == "true" };
        let keep = format!("From {} to {}. Older runs leave the list; their captures stay.", KEEP.start(), KEEP.end());
        Self {
            name: text(NAME, "Name", "Optional. The host of the page is the default.".to_owned(), NAME_CHARS),
            every: every(input.get(EVERY), error(EVERY)),
            cron: Text {
                placeholder: "0 8 * * 1-5",
                ..text(
                    CRON,
                    "Cron expression",
                    "Only for that schedule: minute, hour, day of the month, month, day of the week.".to_owned(),
                    CRON_CHARS,
                )
            },
            time_zone: Text {
                placeholder: "UTC",
                ..text(TIME_ZONE, "Time zone of the schedule", "Of the cron expression.".to_owned(), TIME_ZONE_CHARS)
            },
            compare_image: check(COMPARE_IMAGE, "The image"),
            threshold: Text {
                input_mode: "decimal",
                ..text(
                    THRESHOLD,
                    "Threshold",
                    "Percent of the image that may differ. 0: any change counts.".to_owned(),
                    12,
                )
            },
            ignore: text(
                IGNORE,
                "Ignored elements",
                "CSS selectors, one on each line. These elements are not shown in the captures. A line can also be a part of \
                 the image, as x,y,width,height."
                    .to_owned(),
                IGNORE_CHARS,
            ),
            min_region: Text {
                input_mode: "numeric",
                ..text(
                    MIN_REGION,
                    "Smallest region",
                    format!("Pixels of the image, up to {MAX_REGION_PX}. Smaller regions that differ do not count."),
                    7,
                )
            },
            compare_status: check(COMPARE_STATUS, "The HTTP status"),
            compare_text: check(COMPARE_TEXT, "The text"),
            compare_elements: check(COMPARE_ELEMENTS, "Links, buttons and fields with a name"),
            ignore_patterns: text(
                IGNORE_PATTERNS,
                "Ignored text",
                "Regular expressions, one on each line. What they match in a line of the text does not count."
                    .to_owned(),
                PATTERNS_CHARS,
            ),
            compare_error: error(COMPARE_IMAGE),
            baseline: baseline(input.get(BASELINE), error(BASELINE)),
            alert_after: alert_after(input.get(ALERT_AFTER), error(ALERT_AFTER)),
            notify_webhook: check(NOTIFY_WEBHOOK, "By webhook"),
            notify_email: check(NOTIFY_EMAIL, "By e-mail to the recipients of the team’s alerts"),
            keep: Text { input_mode: "numeric", ..text(KEEP_RUNS, "Runs to keep", keep, 4) },
            quiet_from: Text {
                placeholder: "22:00",
                ..text(
                    QUIET_FROM,
                    "No alerts from",
                    "Optional. Alerts of this time are sent when it is over.".to_owned(),
                    5,
                )
            },
            quiet_to: Text { placeholder: "07:00", ..text(QUIET_TO, "No alerts until", "It may be on the next day.".to_owned(), 5) },
            quiet_zone: Text {
                placeholder: "Europe/Vienna",
                ..text(
                    QUIET_ZONE,
                    "Time zone of both",
                    "That of the schedule is the default.".to_owned(),
                    TIME_ZONE_CHARS,
                )
            },
        }
    }
}

fn every(chosen: &str, error: Option<String>) -> Select {
    Select {
        name: EVERY,
        label: "Schedule",
        hint: "Each capture costs 1 credit if it succeeds.",
        choices: intervals(chosen),
        error,
    }
}

/// The intervals, that of the monitor, and the schedule by a cron expression.
fn intervals(chosen: &str) -> Vec<Choice> {
    let own = Some(chosen).filter(|own| Every::parse(own).is_some() && !INTERVALS.contains(own));
    let choice = |value: &str| Choice { value: value.to_owned(), text: every_text(value), is_chosen: value == chosen };
    let cron =
        Choice { value: BY_CRON.to_owned(), text: "By a cron expression".to_owned(), is_chosen: chosen == BY_CRON };
    INTERVALS.into_iter().chain(own).map(choice).chain([cron]).collect()
}

fn alert_after(chosen: &str, error: Option<String>) -> Select {
    Select {
        name: ALERT_AFTER,
        label: "Report a change after",
        hint: "Captures in a row that differ. More than one leaves out what is soon undone.",
        choices: numbers(chosen),
        error,
    }
}

/// The numbers of captures, and that of the monitor.
fn numbers(chosen: &str) -> Vec<Choice> {
    let own = Some(chosen).filter(|own| own.parse::<u8>().is_ok() && !ALERTS_AFTER.contains(own));
    let choice = |value: &str| Choice {
        value: value.to_owned(),
        text: if value == "1" { "1 capture".to_owned() } else { format!("{value} captures") },
        is_chosen: value == chosen,
    };
    ALERTS_AFTER.into_iter().chain(own).map(choice).collect()
}

fn baseline(chosen: &str, error: Option<String>) -> Select {
    let choice = |baseline: Baseline| Choice {
        value: baseline.as_str().to_owned(),
        text: match baseline {
            Baseline::Latest => "The last reported one",
            Baseline::Accepted => "The accepted one",
        }
        .to_owned(),
        is_chosen: baseline.as_str() == chosen,
    };
    Select {
        name: BASELINE,
        label: "Compare with the capture",
        hint: "After a reported change, later captures are compared with it at once, or only when somebody accepts it.",
        choices: Baseline::ALL.into_iter().map(choice).collect(),
        error,
    }
}

/// Converts a form to a request. The domain validates the values.
pub(super) fn request(input: &Form) -> MonitorRequest {
    let mut unparsed = Vec::new();
    let given = |name: &str| Some(input.get(name).trim().to_owned()).filter(|text| !text.is_empty());
    let mut number = |name: &str| {
        let text = given(name)?;
        let number = text.parse::<i64>().ok();
        if number.is_none() {
            unparsed.push((name.to_owned(), format!("\"{text}\"")));
        }
        number
    };
    let (alert_after, keep, min_region_px) = (number(ALERT_AFTER), number(KEEP_RUNS), number(MIN_REGION));
    if let Some((name, _)) = unparsed.iter_mut().find(|(name, _)| name == MIN_REGION) {
        "compare.image.min_region_px".clone_into(name);
    }
    let threshold = given(THRESHOLD).map(|text| (text.replace(',', ".").parse::<f64>(), text));
    let threshold_ratio = match threshold {
        Some((Ok(percent), _)) => Some(percent / 100.0),
        Some((Err(_), text)) => {
            unparsed.push(("compare.image.threshold_ratio".to_owned(), format!("\"{text}\"")));
            None
        }
        None => None,
    };
    let is_set = |name: &str| input.get(name) == "true";
    let lines = input.get(IGNORE).lines().map(str::trim).filter(|line| !line.is_empty());
    let (areas, selectors): (Vec<&str>, Vec<&str>) = lines.partition(|line| Rectangle::parse(line).is_some());
    let image = is_set(COMPARE_IMAGE).then(|| ImageCompareRequest {
        threshold_ratio,
        ignore: selectors.into_iter().map(str::to_owned).collect(),
        ignore_areas: areas.into_iter().filter_map(Rectangle::parse).collect(),
        min_region_px,
    });
    let patterns = input.get(IGNORE_PATTERNS).lines().filter(|line| !line.trim().is_empty());
    let text =
        is_set(COMPARE_TEXT).then(|| TextCompareRequest { ignore_patterns: patterns.map(str::to_owned).collect() });
    let is_by_cron = input.get(EVERY) == BY_CRON;
    MonitorRequest {
        name: given(NAME),
        capture: Some(options::request(input)),
        every: given(EVERY).filter(|_| !is_by_cron),
        // An empty one is an error that names the field.
        cron: is_by_cron.then(|| given(CRON).unwrap_or_default()),
        time_zone: given(TIME_ZONE).filter(|_| is_by_cron),
        compare: Some(CompareRequest {
            image,
            status: Some(is_set(COMPARE_STATUS)),
            text,
            elements: Some(is_set(COMPARE_ELEMENTS)),
            baseline: given(BASELINE),
        }),
        alert_after,
        notify: Some(NotifyRequest { webhook: Some(is_set(NOTIFY_WEBHOOK)), email: Some(is_set(NOTIFY_EMAIL)) }),
        keep,
        quiet: Some(quiet(input)),
        paused: None,
        unparsed,
    }
}

/// The quiet hours. Without any of both times there are none, whatever the time zone is.
fn quiet(input: &Form) -> QuietRequest {
    let given = |name: &str| Some(input.get(name).trim().to_owned()).filter(|text| !text.is_empty());
    let (from, to) = (given(QUIET_FROM), given(QUIET_TO));
    let has_time = from.is_some() || to.is_some();
    QuietRequest { from, to, time_zone: given(QUIET_ZONE).filter(|_| has_time) }
}

/// The error of a form that compares nothing, which the API would read as the image, or of one with ignored elements or patterns
/// for what is not compared.
pub(super) fn comparison_error(input: &Form) -> Option<FieldError> {
    let is_set = |name: &str| input.get(name) == "true";
    let is_unused = |ignored: &str, compared: &str| !input.get(ignored).trim().is_empty() && !is_set(compared);
    let (field, message) = if ![COMPARE_IMAGE, COMPARE_STATUS, COMPARE_TEXT, COMPARE_ELEMENTS].into_iter().any(is_set) {
        (COMPARE_IMAGE, "Choose what is compared: the image, the HTTP status, the text or the elements.")
    } else if is_unused(IGNORE, COMPARE_IMAGE) {
        (IGNORE, "The ignored elements must be empty if the image is not compared.")
    } else if is_unused(MIN_REGION, COMPARE_IMAGE) {
        (MIN_REGION, "The smallest region must be empty if the image is not compared.")
    } else if is_unused(IGNORE_PATTERNS, COMPARE_TEXT) {
        (IGNORE_PATTERNS, "The ignored text must be empty if the text is not compared.")
    } else {
        return None;
    };
    Some(FieldError { field, message: message.to_owned() })
}

/// The form error for a rejected request; `Err` if the user cannot correct it in the form.
pub(super) fn field_error(fault: Fault) -> Result<FieldError, Fault> {
    if let Fault::BadRequest(field) = &fault
        && let Some(error) = own_error(field)
    {
        return Ok(error);
    }
    options::field_error(fault)
}

/// The error about a field that is none of the options of the capture.
fn own_error(field: &Field) -> Option<FieldError> {
    let (name, label) = match (field.name, field.member) {
        (NAME, _) => (NAME, "The name"),
        (EVERY, _) => (EVERY, "The interval"),
        (CRON, _) => (CRON, "The cron expression"),
        (TIME_ZONE, _) => (TIME_ZONE, "The time zone"),
        ("compare", Some("image.threshold_ratio")) => {
            let message = "The threshold must be a number from 0 to 100.".to_owned();
            return Some(FieldError { field: THRESHOLD, message });
        }
        ("capture", _) => {
            let message = "The options of the capture are too long for a monitor.".to_owned();
            return Some(FieldError { field: "", message });
        }
        ("monitors", _) => {
            let message = format!("The limit is reached: {}. Delete a monitor first.", field.allowed);
            return Some(FieldError { field: "", message });
        }
        ("compare", Some("image.ignore")) => (IGNORE, "The ignored elements"),
        ("compare", Some("image.min_region_px")) => (MIN_REGION, "The smallest region"),
        ("quiet", Some("to")) => (QUIET_TO, "The end of the time without alerts"),
        ("quiet", Some("time_zone")) => (QUIET_ZONE, "The time zone"),
        ("quiet", _) => (QUIET_FROM, "The beginning of the time without alerts"),
        ("compare", Some("elements")) => (COMPARE_IMAGE, "The elements"),
        ("compare", Some("text.ignore_patterns")) => (IGNORE_PATTERNS, "The ignored text"),
        ("compare", Some("text")) => (COMPARE_IMAGE, "The text"),
        ("compare", Some("baseline")) => (BASELINE, "The capture to compare with"),
        ("compare", _) => (COMPARE_IMAGE, "What is compared"),
        (ALERT_AFTER, _) => (ALERT_AFTER, "The number of captures"),
        (KEEP_RUNS, _) => (KEEP_RUNS, "The number of runs"),
        _ => return None,
    };
    let Field { seen, allowed, .. } = field;
    // Forms have a line for each.
    let allowed = allowed.replace('`', "").replace("an array of ", "");
    let message = match seen.is_empty() || seen == "\"\"" {
        true => format!("{label} must be {allowed}."),
        false => format!("{label} must be {allowed}; it was {seen}."),
    };
    Some(FieldError { field: name, message })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grabd_domain::monitor::MonitorSpec;

    use super::*;

    const SHORTEST: Duration = Duration::from_secs(300);
    const VALID: &str =
        "url=example.com&every=1d&compare_image=true&threshold=0.1&baseline=latest&alert_after=1&keep=100";

    fn parse(query: &str) -> Result<MonitorSpec, Fault> {
        MonitorSpec::parse(&request(&Form::parse(query.as_bytes())), SHORTEST)
    }

    #[test]
    fn form_is_a_request() {
        let spec = parse(&format!("{VALID}&ignore=.ad%0D%0A%0D%0A.clock&notify_email=true&width=800")).unwrap();
        assert_eq!(spec.capture.url.as_str(), "https://example.com/");
        let image = spec.compare.image.unwrap();
        assert_eq!((image.threshold_ppm, image.ignore), (1000, vec![".ad".to_owned(), ".clock".to_owned()]));
        assert_eq!((spec.notify.webhook, spec.notify.email, spec.compare.status), (false, true, false));
        assert!(matches!(spec.schedule, Schedule::Every(_)));
        let quiet =
            "&ignore=.ad%0D%0A0,10,300,20&min_region_px=400&quiet_from=22:00&quiet_to=07:00&compare_elements=true";
        let spec = parse(&format!("{VALID}{quiet}")).unwrap();
        let image = spec.compare.image.unwrap();
        let area = Rectangle { x: 0, y: 10, width: 300, height: 20 };
        assert_eq!((image.ignore, image.ignore_areas), (vec![".ad".to_owned()], vec![area]));
        assert_eq!((image.min_region_px, spec.compare.elements), (400, true));
        assert_eq!(spec.quiet.map(|quiet| (quiet.from(), quiet.zone_name())), Some(("22:00".to_owned(), "UTC")));
        assert_eq!(parse(&format!("{VALID}&quiet_zone=Europe/Vienna")).unwrap().quiet, None);
        let cron = "url=example.com&every=cron&cron=0+8+*+*+1-5&time_zone=Europe/Vienna&compare_status=true";
        let spec = parse(cron).unwrap();
        assert_eq!((spec.compare.image, spec.compare.status), (None, true));
        assert!(matches!(spec.schedule, Schedule::Cron(_)));
    }

    #[test]
    fn errors_name_their_field() {
        for (query, field, words) in [
            ("url=&every=1d&compare_image=true", "url", "Enter"),
            ("url=example.com&every=4m&compare_image=true", EVERY, "The interval must be"),
            ("url=example.com&every=cron&compare_image=true", CRON, "The cron expression must be five fields"),
            ("url=example.com&every=cron&cron=0+8+*+*+*&time_zone=Mars&compare_image=true", TIME_ZONE, "\"Mars\""),
            ("url=example.com&every=1d&compare_image=true&threshold=x", THRESHOLD, "from 0 to 100"),
            ("url=example.com&every=1d&compare_image=true&threshold=101", THRESHOLD, "from 0 to 100"),
            ("url=example.com&every=1d&compare_text=true&ignore_patterns=a%0D%0A(", IGNORE_PATTERNS, "it was \"(\""),
            (
                "url=example.com&every=1d&compare_text=true&ignore_patterns=(",
                IGNORE_PATTERNS,
                "must be at most 20 regular",
            ),
            ("url=example.com&every=1d&compare_text=true&mask=.a", COMPARE_IMAGE, "left out where mask is used"),
            ("url=example.com&every=1d&compare_image=true&min_region_px=x", MIN_REGION, "from 0 to 1000000"),
            ("url=example.com&every=1d&compare_image=true&ignore=1,2,0,4", IGNORE, "width"),
            ("url=example.com&every=1d&compare_image=true&quiet_from=22:00", QUIET_TO, "a time of day"),
            ("url=example.com&every=1d&compare_image=true&quiet_to=7", QUIET_FROM, "a time of day"),
            ("url=example.com&every=1d&compare_elements=true&mask=.a", COMPARE_IMAGE, "left out where mask is used"),
            ("url=example.com&every=1d&compare_image=true&keep=0", KEEP_RUNS, "from 1 to 1000; it was 0"),
            ("url=example.com&every=1d&compare_image=true&keep=many", KEEP_RUNS, "it was \"many\""),
            ("url=example.com&every=1d&compare_image=true&width=1", "width", "Width must be"),
        ] {
            let error = field_error(parse(query).unwrap_err()).unwrap();
            assert!(error.field == field && error.message.contains(words), "{query}: {error:?}");
        }
    }

    #[test]
    fn comparison_must_fit_what_is_ignored() {
        for (query, expected) in [
            (VALID, None),
            ("compare_image=true&ignore=.ad", None),
            ("compare_text=true&ignore_patterns=a", None),
            ("compare_elements=true", None),
            ("compare_text=true&min_region_px=5", Some(MIN_REGION)),
            ("compare_status=true&ignore=%0D%0A&ignore_patterns=+", None),
            ("every=1d&ignore=.ad", Some(COMPARE_IMAGE)),
            ("compare_text=true&ignore=.ad", Some(IGNORE)),
            ("compare_image=true&ignore_patterns=a", Some(IGNORE_PATTERNS)),
        ] {
            let error = comparison_error(&Form::parse(query.as_bytes()));
            assert_eq!(error.map(|error| error.field), expected, "{query}");
        }
    }

    #[test]
    fn interval_of_the_monitor_can_be_kept() {
        let chosen = |choices: Vec<Choice>| choices.into_iter().find(|choice| choice.is_chosen).unwrap().text;
        assert_eq!(chosen(intervals("1d")), "Every day");
        assert_eq!(chosen(intervals("45m")), "Every 45 minutes");
        assert_eq!(chosen(intervals(BY_CRON)), "By a cron expression");
        assert_eq!(chosen(numbers("4")), "4 captures");
    }
}
