//! How a grab stands, in people's words.

use std::time::Duration;

use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Facts, Failure, FailureReason, Grab, SettledBy, State, Status};

use super::options::format_name;
use crate::apps::list::environment_name;
use crate::moment::Moment;
use crate::team::AtTeam;

/// Characters of an address that stand for all of it.
const TITLE_CHARS: usize = 80;

/// A grab as a page shows it.
pub(crate) struct View {
    pub(crate) id: String,
    /// The address without its scheme, shortened.
    pub(crate) title: String,
    pub(crate) environment: &'static str,
    pub(crate) status: &'static str,
    pub(crate) sentence: String,
    pub(crate) stands: Stands,
    pub(crate) created: Moment,
    /// The page of the grab; others are below it.
    pub(crate) path: String,
}

/// What there is to see.
pub(crate) enum Stands {
    /// Nothing yet.
    Open,
    /// A picture.
    Picture(Picture),
    /// There was a picture.
    Deleted,
    /// Why there is none.
    Failed { title: &'static str, message: String },
}

/// A picture under its public address.
pub(crate) struct Picture {
    pub(crate) path: String,
    pub(crate) file_name: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) alt: String,
}

/// A fact with its name.
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

impl View {
    pub(crate) fn of(grab: &Grab, at: &AtTeam) -> Self {
        let title = title(grab.spec.url.as_str());
        Self {
            id: grab.id.to_string(),
            environment: environment_name(grab.environment),
            status: status_name(grab.status()),
            sentence: sentence(grab),
            stands: stands(grab, &title),
            created: grab.created_at.into(),
            path: at.grab_path(grab.id, ""),
            title,
        }
    }

    /// What the style sheet calls how it stands.
    pub(crate) const fn class(&self) -> &'static str {
        match self.stands {
            Stands::Open => "open",
            Stands::Picture(_) => "done",
            Stands::Deleted => "deleted",
            Stands::Failed { .. } => "failed",
        }
    }

    /// Does its picture have a small one?
    pub(crate) fn is_picture(&self) -> bool {
        matches!(self.stands, Stands::Picture(_))
    }

    /// Is something still to come?
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stands, Stands::Open)
    }
}

/// An address without its scheme, shortened.
pub(crate) fn title(url: &str) -> String {
    let short = url.split_once("://").map_or(url, |(_, rest)| rest);
    let short = short.strip_suffix('/').unwrap_or(short);
    match short.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &short[..end]),
        None => short.to_owned(),
    }
}

/// A status as people read it.
pub(crate) const fn status_name(status: Status) -> &'static str {
    match status {
        Status::Pending => "Waiting",
        Status::Processing => "In the browser",
        Status::Done => "Done",
        Status::Failed => "Failed",
    }
}

fn sentence(grab: &Grab) -> String {
    match (&grab.state, grab.deleted_at) {
        (State::Pending, _) if grab.attempts > 0 => "Waiting for a browser, to be tried once more.".to_owned(),
        (State::Pending, _) => "Waiting for a browser.".to_owned(),
        (State::Processing, _) => "A browser has the page open.".to_owned(),
        (State::Done { .. }, Some(_)) => "Its picture was deleted.".to_owned(),
        (State::Done { .. }, None) if grab.environment == Environment::Test => {
            "A placeholder: the page was not visited, and nothing was charged.".to_owned()
        }
        (State::Done { finished_at, .. }, None) => {
            format!("The picture is there. It took {}.", seconds(finished_at.since(grab.created_at)))
        }
        (State::Failed { .. }, _) => "There is no picture, and nothing was charged.".to_owned(),
    }
}

fn stands(grab: &Grab, title: &str) -> Stands {
    match &grab.state {
        State::Pending | State::Processing => Stands::Open,
        State::Done { image: Some(key), facts, .. } if grab.deleted_at.is_none() => Stands::Picture(Picture {
            path: format!("/{}", key.path()),
            file_name: format!("{}-{}.{}", grab.spec.url.host(), grab.id, key.format().as_str()),
            width: facts.image_width.unwrap_or_else(|| grab.spec.viewport.width()),
            height: facts.image_height.unwrap_or_else(|| grab.spec.reported_height()),
            alt: format!("Picture of {title}"),
        }),
        State::Done { .. } => Stands::Deleted,
        State::Failed { failure, .. } => failed(failure),
    }
}

fn failed(failure: &Failure) -> Stands {
    let title = match failure.reason {
        FailureReason::RenderBlocked => "The site did not let itself be captured",
        FailureReason::RenderFailed => "The page could not be captured",
        FailureReason::SsrfDetected => "The page led to an address that is not public",
        FailureReason::InternalError => "Something went wrong on our side",
    };
    Stands::Failed { title, message: failure.message.clone() }
}

/// What was asked for.
pub(crate) fn request(grab: &Grab) -> Vec<Fact> {
    let CaptureSpec { url, viewport, format, full_page, delay, selector } = &grab.spec;
    let mut facts = vec![
        fact("Address", url.as_str()),
        fact("Viewport", format!("{} × {}", viewport.width(), viewport.height())),
        fact("Format", format_name(*format)),
    ];
    if *full_page {
        facts.push(fact("Shows", "the whole page"));
    }
    if let Some(selector) = selector {
        facts.push(fact("Shows", format!("the element {}", selector.as_str())));
    }
    if !delay.is_zero() {
        facts.push(fact("Wait before the shot", seconds(*delay)));
    }
    facts
}

/// What came of it.
pub(crate) fn outcome(grab: &Grab) -> Vec<Fact> {
    match &grab.state {
        State::Pending | State::Processing => Vec::new(),
        // A placeholder tells nothing of the page.
        State::Done { size_bytes, facts, .. } if grab.environment == Environment::Test => {
            vec![fact("Picture", picture(facts, *size_bytes))]
        }
        State::Done { finished_at, size_bytes, execution_ms, facts, .. } => {
            let took = finished_at.since(grab.created_at);
            let rendered = Duration::from_millis(u64::from(*execution_ms));
            let mut shown = vec![fact("Picture", picture(facts, *size_bytes))];
            shown.push(fact("From request to picture", seconds(took)));
            shown.push(fact("Of that in the browser", seconds(rendered.min(took))));
            shown.extend(verdict(facts));
            shown
        }
        State::Failed { finished_at, failure, facts } => {
            let mut shown = vec![
                fact("Code", failure.reason.code().as_str()),
                fact("From request to failure", seconds(finished_at.since(grab.created_at))),
            ];
            shown.extend(verdict(facts));
            shown
        }
    }
}

fn picture(facts: &Facts, size_bytes: u64) -> String {
    let size = size(size_bytes);
    match (facts.image_width, facts.image_height) {
        (Some(width), Some(height)) => format!("{width} × {height} pixels, {size}"),
        (_, _) => size,
    }
}

/// What the browser saw on the way.
fn verdict(facts: &Facts) -> Vec<Fact> {
    let Facts { final_url, http_status, settled_by, blocked_requests, truncated, image_width: _, image_height: _ } =
        facts;
    let mut shown = Vec::new();
    if let Some(url) = final_url {
        shown.push(fact("Ended at", url.as_str()));
    }
    if let Some(status) = http_status {
        shown.push(fact("HTTP status", status.to_string()));
    }
    if let Some(settled_by) = settled_by {
        let said = match settled_by {
            SettledBy::Quiet => "when the page had come to rest",
            SettledBy::Deadline => "when its time was up: the page did not come to rest",
        };
        shown.push(fact("Taken", said));
    }
    if *blocked_requests > 0 {
        shown.push(fact("Requests refused", format!("{blocked_requests}, to addresses that are not public")));
    }
    if *truncated {
        shown.push(fact("Cut", "the page is longer than a picture may be"));
    }
    shown
}

/// A fact.
pub(crate) fn fact(name: &'static str, value: impl Into<String>) -> Fact {
    Fact { name, value: value.into() }
}

/// A time in the unit that fits.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..100_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        1_000_000.. => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;

    #[test]
    fn times_and_sizes_are_said_in_the_unit_that_fits() {
        for (ms, said) in [(0, "0 ms"), (999, "999 ms"), (1830, "1.8 s"), (99_999, "99.9 s"), (123_456, "2 min 3 s")] {
            assert_eq!(seconds(Duration::from_millis(ms)), said);
        }
        for (bytes, said) in [(1, "1 byte"), (1000, "1 KB"), (48_213, "49 KB"), (1_250_000, "1.2 MB")] {
            assert_eq!(size(bytes), said);
        }
    }

    #[test]
    fn a_title_is_the_address_without_what_says_nothing() {
        let of = |url: &str| {
            let request = CaptureRequest { url: Some(url.to_owned()), ..CaptureRequest::default() };
            title(CaptureSpec::parse(&request).unwrap().url.as_str())
        };
        assert_eq!(of("https://example.com/"), "example.com");
        assert_eq!(of("http://example.com/a/?b"), "example.com/a/?b");
        let long = of(&format!("https://example.com/{}", "a".repeat(200)));
        assert_eq!((long.chars().count(), long.ends_with("a…")), (TITLE_CHARS + 1, true));
    }

    #[test]
    fn everything_that_was_seen_is_told() {
        let facts = Facts {
            final_url: Some("https://example.com/b".to_owned()),
            http_status: Some(404),
            settled_by: Some(SettledBy::Deadline),
            blocked_requests: 3,
            image_width: Some(1280),
            image_height: Some(16_384),
            truncated: true,
        };
        let told: Vec<_> = verdict(&facts).into_iter().map(|fact| (fact.name, fact.value)).collect();
        let told: Vec<_> = told.iter().map(|(name, value)| (*name, &**value)).collect();
        assert_eq!(
            told,
            [
                ("Ended at", "https://example.com/b"),
                ("HTTP status", "404"),
                ("Taken", "when its time was up: the page did not come to rest"),
                ("Requests refused", "3, to addresses that are not public"),
                ("Cut", "the page is longer than a picture may be"),
            ]
        );
        assert!(verdict(&Facts::default()).is_empty());
    }
}
