//! Validation of requests to create a monitor for each of several pages.

use std::sync::LazyLock;
use std::time::Duration;

use super::request::{MonitorRequest, MonitorSpec, NAME_CHARS, bad, parse_capture};
use crate::capture::CaptureRequest;
use crate::faults::{Fault, Field};
use crate::target::TargetUrl;

/// The most monitors that one request creates.
pub const MAX_BATCH: usize = 50;

/// An unvalidated request to create a monitor for each of several pages, all with the same settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MonitorBatchRequest {
    /// The URLs of the pages.
    pub urls: Vec<String>,
    /// The settings. Their capture names no page, and may be left out.
    pub monitor: MonitorRequest,
}

/// What is between the name of a request and the page in the name of a monitor.
const SEPARATOR: &str = ": ";

/// The paths of members that may have the wrong type, and what they must be here. The others are those of a single create.
const MEMBERS: [(&str, &str); 3] = [
    ("body", "a JSON object with `urls` and some of the other members of a new monitor"),
    ("urls", URLS),
    ("capture", "an object with capture options, without `url` and `html`"),
];

const URLS: &str = "an array of 1 to 50 URLs";

/// The names of the places in the list, such as `urls[3]`.
static PLACES: LazyLock<Vec<String>> = LazyLock::new(|| (0..MAX_BATCH).map(|index| format!("urls[{index}]")).collect());

impl MonitorBatchRequest {
    /// Validates the request. The monitors have the order of the URLs, and their runs are at least `shortest` apart.
    ///
    /// # Errors
    /// The first invalid member. An invalid URL is named by its place, such as `urls[3]`.
    pub fn parse(&self, shortest: Duration) -> Result<Vec<MonitorSpec>, Fault> {
        self.check_members()?;
        let capture = self.monitor.capture.clone().unwrap_or_default();
        check_has_no_page(&capture)?;
        let mut specs: Vec<MonitorSpec> = Vec::with_capacity(self.urls.len());
        for (index, url) in self.urls.iter().enumerate() {
            let capture = CaptureRequest { url: Some(url.clone()), ..capture.clone() };
            let parsed = match specs.first() {
                None => {
                    let request = MonitorRequest { capture: Some(capture), ..self.monitor.clone() };
                    MonitorSpec::parse(&request, shortest)
                }
                // Only the page is another one.
                Some(first) => parse_capture(&capture).map(|capture| MonitorSpec { capture, ..first.clone() }),
            };
            let spec = parsed.map_err(|fault| at_place(fault, index))?;
            if specs.iter().any(|earlier| earlier.capture.url == spec.capture.url) {
                let seen = format!("\"{}\"", spec.capture.url);
                return Err(bad(place(index), &seen, "another URL than those before it"));
            }
            let name = name_of(self.monitor.name.as_deref(), &spec.capture.url);
            specs.push(MonitorSpec { name, ..spec });
        }
        Ok(specs)
    }

    fn check_members(&self) -> Result<(), Fault> {
        for (name, allowed) in MEMBERS {
            if let Some((_, seen)) = self.monitor.unparsed.iter().find(|(of, _)| of == name) {
                return Err(bad(name, seen, allowed));
            }
        }
        match self.urls.len() {
            1..=MAX_BATCH => Ok(()),
            0 => Err(bad("urls", "", URLS)),
            count => Err(bad("urls", &count.to_string(), URLS)),
        }
    }
}

/// The same fault, about the URL at a place of the list if it is about the URL of a page.
#[must_use]
pub fn at_place(fault: Fault, index: usize) -> Fault {
    match fault.field().is_some_and(|field| field.name == "url") {
        true => fault.renamed(place(index)),
        false => fault,
    }
}

fn place(index: usize) -> &'static str {
    PLACES.get(index).map_or("urls", String::as_str)
}

/// A page in the capture would be one that no URL of the list says.
fn check_has_no_page(capture: &CaptureRequest) -> Result<(), Fault> {
    let given = capture.given();
    let is_unparsed = |name: &str| capture.unparsed.iter().any(|(of, _)| of == name);
    match ["url", "html"].into_iter().find(|name| given.contains(name) || is_unparsed(name)) {
        None => Ok(()),
        Some(name) => {
            let field = Field::new("capture", "", "left out where `urls` is used").in_member(Some(name));
            Err(Fault::BadRequest(field))
        }
    }
}

/// The name of a monitor: the one of the request, followed by the host and the path of the page. What is too long is cut.
fn name_of(given: Option<&str>, url: &TargetUrl) -> String {
    let path = url.path();
    let page = format!("{}{}", url.host(), if path == "/" { "" } else { path });
    let Some(given) = given.map(str::trim) else { return shortened(&page, NAME_CHARS) };
    let both = NAME_CHARS - SEPARATOR.len();
    // The page has half of the name at least, since it is what tells the monitors apart.
    let page = shortened(&page, both.saturating_sub(given.chars().count()).max(both / 2));
    let given = shortened(given, both - page.chars().count());
    format!("{given}{SEPARATOR}{page}")
}

/// The text with at most so many characters.
fn shortened(text: &str, longest: usize) -> String {
    match text.chars().count() <= longest {
        true => text.to_owned(),
        false => text.chars().take(longest.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::NotifyRequest;
    use super::*;

    const SHORTEST: Duration = Duration::from_secs(300);

    fn request(urls: &[&str]) -> MonitorBatchRequest {
        let urls = urls.iter().map(|url| (*url).to_owned()).collect();
        let monitor = MonitorRequest { every: Some("1h".to_owned()), ..MonitorRequest::default() };
        MonitorBatchRequest { urls, monitor }
    }

    fn refused(request: &MonitorBatchRequest) -> String {
        request.parse(SHORTEST).unwrap_err().to_string()
    }

    #[test]
    fn each_page_has_a_monitor_with_the_same_settings() {
        let mut request = request(&["https://example.com/a", "https://example.org"]);
        request.monitor.capture = Some(CaptureRequest { width: Some(800), ..CaptureRequest::default() });
        request.monitor.notify = Some(NotifyRequest { webhook: None, email: Some(false) });
        let specs = request.parse(SHORTEST).unwrap();
        let urls: Vec<&str> = specs.iter().map(|spec| spec.capture.url.as_str()).collect();
        assert_eq!(urls, ["https://example.com/a", "https://example.org/"]);
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["example.com/a", "example.org"]);
        for spec in &specs {
            assert_eq!((&spec.schedule, spec.notify.email), (&specs[0].schedule, false));
            let shown = spec.capture.shown_options();
            assert!(shown.iter().any(|(name, _)| *name == "width"), "{shown:?}");
        }
    }

    #[test]
    fn number_of_pages_is_limited() {
        let urls: Vec<String> = (0..=MAX_BATCH).map(|number| format!("https://example.com/{number}")).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        assert_eq!(refused(&request(&[])), "`urls` must be an array of 1 to 50 URLs.");
        assert_eq!(refused(&request(&urls)), "`urls` must be an array of 1 to 50 URLs; got 51.");
        assert_eq!(request(&urls[..MAX_BATCH]).parse(SHORTEST).map(|specs| specs.len()), Ok(MAX_BATCH));
    }

    #[test]
    fn invalid_url_is_named_by_its_place() {
        let message = refused(&request(&["https://example.com/", "https://example.org/", "nothing"]));
        assert!(message.starts_with("`urls[2]` must be") && message.ends_with("got \"nothing\"."), "{message}");
        assert!(refused(&request(&[""])).starts_with("`urls[0]` must be"));
        let twice = refused(&request(&["https://example.com", "https://example.com/"]));
        assert_eq!(twice, "`urls[1]` must be another URL than those before it; got \"https://example.com/\".");
        // Such as those of checks that need the resolver.
        let private = Fault::SsrfDetected(Field::new("url", "\"a.example\"", "public"));
        assert!(at_place(private, 7).to_string().contains("`urls[7]` must be public"));
        let other = Fault::BadRequest(Field::new("proxy", "", "known"));
        assert_eq!(at_place(other.clone(), 7), other);
    }

    #[test]
    fn other_members_are_checked_as_those_of_a_single_create() {
        let with = |change: fn(&mut MonitorRequest)| {
            let mut request = request(&["https://example.com/"]);
            change(&mut request.monitor);
            refused(&request)
        };
        let capture = |change: fn(&mut CaptureRequest)| {
            let mut capture = CaptureRequest::default();
            change(&mut capture);
            let mut request = request(&["https://example.com/"]);
            request.monitor.capture = Some(capture);
            refused(&request)
        };
        assert!(with(|monitor| monitor.every = Some("1m".to_owned())).starts_with("`every` must be"));
        assert!(with(|monitor| monitor.name = Some(" ".to_owned())).starts_with("`name` must be"));
        let unparsed = |name: &str| {
            let mut request = request(&["https://example.com/"]);
            request.monitor.unparsed = vec![("keep".to_owned(), "x".to_owned()), (name.to_owned(), "5".to_owned())];
            refused(&request)
        };
        assert!(unparsed("body").starts_with("`body` must be a JSON object with `urls`"));
        assert_eq!(unparsed("urls"), "`urls` must be an array of 1 to 50 URLs; got 5.");
        assert!(unparsed("capture").starts_with("`capture` must be an object"));
        assert!(unparsed("cron").starts_with("`cron` must be"));
        let expected = "`capture.url` must be left out where `urls` is used.";
        assert_eq!(capture(|capture| capture.url = Some("https://example.com/".into())), expected);
        assert_eq!(capture(|capture| capture.unparsed = vec![("url".to_owned(), "5".to_owned())]), expected);
        assert!(capture(|capture| capture.width = Some(1)).starts_with("`width` must be"));
        assert!(capture(|capture| capture.max_age = Some(60)).starts_with("`max_age` must be left out"));
    }

    #[test]
    fn names_end_with_the_page_and_are_never_too_long() {
        let name = |given: Option<&str>, url: &str| name_of(given, &TargetUrl::parse(url).unwrap());
        assert_eq!(name(Some(" Prices "), "https://example.com/a/b?c=1"), "Prices: example.com/a/b");
        assert_eq!(name(Some("Prices"), "https://example.com/"), "Prices: example.com");
        assert_eq!(name(None, "https://example.com:8443/a"), "example.com/a");
        let (long, path) = ("n".repeat(NAME_CHARS), format!("https://example.com/{}", "p".repeat(200)));
        for (given, url) in
            [(None, path.as_str()), (Some(long.as_str()), "https://example.com/a"), (Some(long.as_str()), &path)]
        {
            let name = name(given, url);
            assert_eq!(name.chars().count(), NAME_CHARS, "{name}");
            assert!(name.contains("example.com/") && name.contains('…'), "{name}");
        }
        assert!(name(Some(long.as_str()), "https://example.com/a").ends_with("…: example.com/a"));
    }
}
