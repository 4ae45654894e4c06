//! Validation of requests to capture a site.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::address::{ADDRESS_BYTES, Scope, normal_address, origin_of, path_and_query};
use super::glob::comparable_path;
use super::pattern::{MAX_PATTERNS, Pattern};
use super::skip_reason::SkipReason;
use crate::capture::{CaptureRequest, CaptureSpec, Class, FileKind, Secret};
use crate::faults::{Fault, Field};
use crate::target::TargetUrl;

/// The longest name, in characters.
pub const NAME_CHARS: usize = 100;
/// The most pages of a job that are captured. An operator may set a smaller number.
pub const MAX_PAGES: u32 = 1000;
/// How many links lead from the start page to a captured page at most.
pub const MAX_DEPTH: RangeInclusive<u32> = 0..=10;
/// How often a job asks for a page or a document in a minute.
pub const REQUESTS_PER_MINUTE: RangeInclusive<u32> = 1..=120;
const DEFAULT_PAGES: u32 = 50;
const DEFAULT_DEPTH: u32 = 3;
const DEFAULT_REQUESTS: u32 = 30;
/// Ends of addresses of files that are no pages.
const FILE_ENDS: &[&str] = &[
    "7z", "aac", "apk", "atom", "avi", "avif", "bmp", "bz2", "css", "csv", "deb", "dmg", "doc", "docx", "eot", "epub",
    "exe", "flac", "flv", "gif", "gz", "heic", "ico", "ics", "iso", "jar", "jpeg", "jpg", "js", "json", "m4a", "m4v",
    "map", "mid", "mjs", "mkv", "mov", "mp3", "mp4", "mpeg", "mpg", "msi", "odp", "ods", "odt", "ogg", "opus", "otf",
    "pdf", "png", "ppt", "pptx", "psd", "rar", "rpm", "rss", "rtf", "svg", "tar", "tgz", "tif", "tiff", "ttf", "wasm",
    "wav", "webm", "webp", "wmv", "woff", "woff2", "xls", "xlsx", "xz", "zip",
];

/// An unvalidated request to capture a site. Absent members have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names of the API")]
pub struct SiteRequest {
    pub url: Option<String>,
    pub sitemap: Option<String>,
    pub capture: Option<CaptureRequest>,
    pub max_pages: Option<i64>,
    pub max_depth: Option<i64>,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub robots: Option<bool>,
    pub requests_per_minute: Option<i64>,
    pub name: Option<String>,
    /// Members of the wrong type: their path, and the received value.
    pub unparsed: Vec<(String, String)>,
}

/// Where the addresses of a site come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the links of its pages.
    Links {
        /// The start page.
        start: TargetUrl,
        /// How many links lead to a captured page at most. 0: only the start page is captured.
        max_depth: u32,
    },
    /// From a sitemap, an index of sitemaps, or a list.
    Sitemap(TargetUrl),
}

impl Source {
    /// The address from which the job starts.
    pub const fn address(&self) -> &TargetUrl {
        match self {
            Self::Links { start, .. } => start,
            Self::Sitemap(sitemap) => sitemap,
        }
    }
}

/// What a job captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteSpec {
    /// Its name, for people.
    pub name: String,
    /// Where the addresses come from.
    pub source: Source,
    /// How each page is captured. Its URL is that of the source.
    pub capture: CaptureSpec,
    /// The most pages that are captured.
    pub max_pages: u32,
    /// Patterns of the addresses that are captured. Empty: all are.
    pub include: Vec<Pattern>,
    /// Patterns of the addresses that are not captured, even if they are included.
    pub exclude: Vec<Pattern>,
    /// Whether the robots.txt of each host is followed.
    pub robots: bool,
    /// How often the site is asked for a page or a document in a minute.
    pub requests_per_minute: u32,
}

/// The members that may have the wrong type, in the order in which they are reported, and what they must be.
const MEMBERS: [(&str, &str); 11] = [
    ("body", BODY),
    ("url", URL),
    ("sitemap", SITEMAP),
    ("capture", CAPTURE),
    ("max_pages", "an integer from 1 to 1000"),
    ("max_depth", "an integer from 0 to 10"),
    ("include", PATTERNS),
    ("exclude", PATTERNS),
    ("robots", "true or false"),
    ("requests_per_minute", "an integer from 1 to 120"),
    ("name", "a string of 1 to 100 characters"),
];

const BODY: &str = "a JSON object with `url` or `sitemap`, and some of `capture`, `max_pages`, `max_depth`, `include`, `exclude`, \
                    `robots`, `requests_per_minute` and `name`";
const URL: &str = "the absolute http(s) URL of a start page, at most 2048 bytes long";
const SITEMAP: &str = "the absolute http(s) URL of a sitemap, at most 2048 bytes long";
const CAPTURE: &str = "an object with capture options, without `url` and `html`";
const PATTERNS: &str =
    "an array of at most 20 patterns of 1 to 200 characters, which begin with `/` or `*`, such as \"/blog/*\"";

impl SiteSpec {
    /// Validates a request. The operator decides how many pages a job may capture at most, and whether it may ignore robots.txt.
    ///
    /// # Errors
    /// The first invalid member.
    pub fn parse(request: &SiteRequest, most_pages: u32, may_ignore_robots: bool) -> Result<Self, Fault> {
        check_types(request)?;
        let source = parse_source(request)?;
        let capture = parse_capture(request.capture.as_ref(), &source)?;
        let most_pages = most_pages.clamp(1, MAX_PAGES);
        let robots = request.robots.unwrap_or(true);
        if !robots && !may_ignore_robots {
            let allowed =
                "true or left out: the operator of this service has every site job follow the robots.txt of the site";
            return Err(bad("robots", "false", allowed));
        }
        Ok(Self {
            name: match &request.name {
                Some(name) => parse_name(name)?,
                None => source.address().host().to_string().chars().take(NAME_CHARS).collect(),
            },
            source,
            capture,
            max_pages: number("max_pages", request.max_pages, &(1..=most_pages))?
                .unwrap_or(DEFAULT_PAGES.min(most_pages)),
            include: parse_patterns("include", &request.include)?,
            exclude: parse_patterns("exclude", &request.exclude)?,
            robots,
            requests_per_minute: number("requests_per_minute", request.requests_per_minute, &REQUESTS_PER_MINUTE)?
                .unwrap_or(DEFAULT_REQUESTS),
        })
    }

    /// Why a page that was found is not captured, as far as its address says. The start page is captured in any case.
    pub fn refuses(&self, scope: &Scope, url: &TargetUrl) -> Option<SkipReason> {
        if !scope.contains(url) {
            return Some(SkipReason::OtherSite);
        }
        // It is brought to the form once for all patterns: a sitemap may have 50,000 addresses, which are compared with up to 40.
        let path = comparable_path(path_and_query(url));
        let is_included = self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(&path));
        if !is_included || self.exclude.iter().any(|pattern| pattern.matches(&path)) {
            return Some(SkipReason::Excluded);
        }
        is_file(url).then_some(SkipReason::NotHtml)
    }

    /// The request for the capture of a page. If links are followed, they are made as a file. Headers, logins and the cookies of a host
    /// are left out of those of other origins than that of the start page or the sitemap.
    pub fn page_request(&self, url: &str) -> CaptureRequest {
        page_request(&self.capture, &self.source, url)
    }

    /// The time between two pages or documents.
    pub fn pace(&self) -> Duration {
        Duration::from_secs(60) / self.requests_per_minute.max(1)
    }

    /// How many links lead to a captured page at most. `None` if links are not followed.
    pub const fn max_depth(&self) -> Option<u32> {
        match &self.source {
            Source::Links { max_depth, .. } => Some(*max_depth),
            Source::Sitemap(_) => None,
        }
    }
}

fn page_request(capture: &CaptureSpec, source: &Source, url: &str) -> CaptureRequest {
    let unknown = capture.unknown.clone();
    let mut request = CaptureRequest { unknown, url: Some(url.to_owned()), ..capture.to_minimal_request() };
    if matches!(source, Source::Links { .. }) && !capture.also.contains(&FileKind::Links) {
        let mut also = request.also.unwrap_or_default();
        also.push(FileKind::Links.as_str().to_owned());
        request.also = Some(also);
    }
    if !has_origin(url, source.address()) {
        remove_login(&mut request);
    }
    request
}

/// Whether a page has the scheme, the host and the port of an address.
fn has_origin(page: &str, address: &TargetUrl) -> bool {
    normal_address(page).is_some_and(|page| origin_of(&page) == origin_of(address))
}

/// Removes what a capture sends to the origin of its page only, and cookies that are for its host only: a page of another origin may be
/// of somebody else, although it is of the same site.
fn remove_login(request: &mut CaptureRequest) {
    (request.headers, request.basic_auth) = (None, None);
    let mut cookies = request.cookies.take();
    if let Some(Secret(cookies)) = &mut cookies {
        cookies.retain(|cookie| cookie.contains_key("domain"));
    }
    request.cookies = cookies.filter(|Secret(cookies)| !cookies.is_empty());
}

fn bad(name: &'static str, seen: &str, allowed: impl Into<String>) -> Fault {
    Fault::BadRequest(Field::new(name, seen, allowed))
}

fn in_capture(member: &'static str, seen: &str) -> Fault {
    let field = Field::new("capture", seen, "left out of the capture of a site, whose pages have their own");
    Fault::BadRequest(field.in_member(Some(member)))
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn check_types(request: &SiteRequest) -> Result<(), Fault> {
    for (name, allowed) in MEMBERS {
        if let Some((_, seen)) = request.unparsed.iter().find(|(of, _)| of == name) {
            return Err(bad(name, seen, allowed));
        }
    }
    Ok(())
}

fn parse_source(request: &SiteRequest) -> Result<Source, Fault> {
    let address = |name, text: &String, allowed| {
        // The errors of a URL name what is wrong with it.
        TargetUrl::parse(text).map_err(|fault| of_member(fault, name))?;
        // Also one that is shorter without its fragment.
        let address = normal_address(text).filter(|_| text.len() <= ADDRESS_BYTES);
        address.ok_or_else(|| bad(name, &quoted(text), allowed))
    };
    match (&request.url, &request.sitemap) {
        (Some(_), Some(sitemap)) => Err(bad("sitemap", &quoted(sitemap), "left out where `url` is used")),
        (None, None) => Err(bad("url", "", format!("present, unless `sitemap` is: {URL}"))),
        (Some(url), None) => {
            let max_depth = number("max_depth", request.max_depth, &MAX_DEPTH)?.unwrap_or(DEFAULT_DEPTH);
            Ok(Source::Links { start: address("url", url, URL)?, max_depth })
        }
        (None, Some(sitemap)) => {
            if let Some(depth) = request.max_depth {
                return Err(bad("max_depth", &depth.to_string(), "left out where `url` is not used"));
            }
            Ok(Source::Sitemap(address("sitemap", sitemap, SITEMAP)?))
        }
    }
}

/// The fault about an address, with the member that it is in.
fn of_member(fault: Fault, name: &'static str) -> Fault {
    if let Fault::BadRequest(field) = fault { Fault::BadRequest(Field { name, ..field }) } else { fault }
}

/// Options that would not make one new image for each page.
fn parse_capture(request: Option<&CaptureRequest>, source: &Source) -> Result<CaptureSpec, Fault> {
    let request = request.cloned().unwrap_or_default();
    if let Some(url) = &request.url {
        return Err(in_capture("url", &quoted(url)));
    }
    if request.html.is_some() {
        return Err(in_capture("html", ""));
    }
    let request = CaptureRequest { url: Some(source.address().to_string()), ..request };
    let capture = CaptureSpec::parse(&request)?;
    capture.check_class(Class::Async)?;
    let left_out = "left out of the capture of a site";
    if let Some(earlier) = capture.compare_to {
        return Err(bad("compare_to", &quoted(&earlier.to_string()), left_out));
    }
    if !capture.max_age.is_zero() {
        let seen = capture.max_age.as_secs().to_string();
        return Err(bad("max_age", &seen, format!("{left_out}: each page is captured anew")));
    }
    if capture.secrets.given().contains(&"upload_url") {
        return Err(bad("upload_url", "", format!("{left_out}: it would be overwritten by each page")));
    }
    if matches!(source, Source::Links { .. }) {
        if !capture.mask.is_empty() {
            return Err(bad("mask", "", format!("{left_out} that starts with `url`, since its links may be masked")));
        }
        CaptureSpec::parse(&page_request(&capture, source, source.address().as_str()))?;
    }
    Ok(capture)
}

fn parse_patterns(name: &'static str, given: &[String]) -> Result<Vec<Pattern>, Fault> {
    if given.len() > MAX_PATTERNS {
        return Err(bad(name, &format!("{} patterns", given.len()), PATTERNS));
    }
    let parsed = given.iter().map(|text| Pattern::parse(text).ok_or_else(|| bad(name, &quoted(text), PATTERNS)));
    parsed.collect()
}

fn parse_name(text: &str) -> Result<String, Fault> {
    let name = text.trim();
    let is_valid = (1..=NAME_CHARS).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if is_valid { Ok(name.to_owned()) } else { Err(bad("name", text, "a text of 1 to 100 characters in one line")) }
}

fn number(name: &'static str, given: Option<i64>, range: &RangeInclusive<u32>) -> Result<Option<u32>, Fault> {
    let Some(given) = given else { return Ok(None) };
    let allowed = || format!("an integer from {} to {}", range.start(), range.end());
    let number = u32::try_from(given).ok().filter(|number| range.contains(number));
    number.map(Some).ok_or_else(|| bad(name, &given.to_string(), allowed()))
}

/// Whether the path ends like that of a file that is no page.
fn is_file(url: &TargetUrl) -> bool {
    let path = url.as_str().split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit_once('/').map_or("", |(_, name)| name);
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    FILE_ENDS.iter().any(|known| end.eq_ignore_ascii_case(known))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
