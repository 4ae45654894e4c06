//! What to capture and how: parsed once from what a caller sent, afterwards it cannot be invalid.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::faults::{Fault, Field};
use crate::limits;
use crate::target::TargetUrl;

/// Image format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Format {
    #[default]
    Png,
    Jpeg,
    Webp,
}

impl Format {
    /// The contract's word, which is also the file's ending.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }

    /// The media type images of this format are served as.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }

    /// The format behind the contract's word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Png, Self::Jpeg, Self::Webp].into_iter().find(|format| format.as_str() == text)
    }
}

/// The window a page is laid out in, in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Viewport {
    width: u32,
    height: u32,
}

impl Viewport {
    /// A viewport inside the contract's bounds.
    ///
    /// # Errors
    /// [`Fault::InvalidViewport`] naming the side that is out of range.
    pub fn new(width: i64, height: i64) -> Result<Self, Fault> {
        Ok(Self { width: side("width", width, limits::WIDTH)?, height: side("height", height, limits::HEIGHT)? })
    }

    /// Width in CSS pixels.
    pub const fn width(self) -> u32 {
        self.width
    }

    /// Height in CSS pixels.
    pub const fn height(self) -> u32 {
        self.height
    }
}

/// A CSS selector as the caller wrote it: not empty, not overlong, without NUL. Whether it parses only the browser knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Selector(String);

impl Selector {
    /// The text for the browser.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A create as it came over a wire: nothing is judged yet.
#[derive(Clone, Debug, Default)]
pub struct CaptureRequest {
    /// Target address; required.
    pub url: Option<String>,
    /// Viewport width in CSS pixels.
    pub width: Option<i64>,
    /// Viewport height in CSS pixels.
    pub height: Option<i64>,
    /// Image format's word.
    pub format: Option<String>,
    /// The whole page instead of the viewport.
    pub full_page: Option<bool>,
    /// Wait before the shot in milliseconds.
    pub delay_ms: Option<i64>,
    /// Capture this one element.
    pub selector: Option<String>,
    /// Fields whose value had the wrong type on the wire it came by, with what was seen there.
    pub unparsed: Vec<(String, String)>,
}

/// A capture that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSpec {
    /// Where to go.
    pub url: TargetUrl,
    /// The window.
    pub viewport: Viewport,
    /// The file to make.
    pub format: Format,
    /// The whole page instead of the viewport.
    pub full_page: bool,
    /// Wait after the page is ready and before the shot.
    pub delay: Duration,
    /// The element to capture instead of the viewport.
    pub selector: Option<Selector>,
}

impl CaptureSpec {
    /// Judges a request in the order the contract's codes need: the url, then width and height, then the rest. Whether
    /// the host is public is asked afterwards ([`TargetUrl::check_public`]), behind the caller's idempotency key.
    ///
    /// # Errors
    /// The first field that cannot be accepted, as [`Fault::BadRequest`] or [`Fault::InvalidViewport`].
    pub fn parse(request: &CaptureRequest) -> Result<Self, Fault> {
        let typed = |name: &'static str, allowed: String| match request.unparsed.iter().find(|(n, _)| n == name) {
            Some((_, seen)) => Err(Field::new(name, seen, allowed)),
            None => Ok(()),
        };
        typed("body", "a JSON object".into()).map_err(Fault::BadRequest)?;

        typed("url", "a string with an absolute http(s) URL".into()).map_err(Fault::BadRequest)?;
        let url = request.url.as_deref().ok_or_else(|| {
            Fault::BadRequest(Field::new("url", "", "present: an absolute http(s) URL of a public address"))
        })?;
        let url = TargetUrl::parse(url)?;

        typed("width", integer(&limits::WIDTH)).map_err(Fault::InvalidViewport)?;
        let width = request.width.unwrap_or_else(|| limits::DEFAULT_WIDTH.into());
        side("width", width, limits::WIDTH)?;
        typed("height", integer(&limits::HEIGHT)).map_err(Fault::InvalidViewport)?;
        let viewport = Viewport::new(width, request.height.unwrap_or_else(|| limits::DEFAULT_HEIGHT.into()))?;

        let formats = "one of \"png\", \"jpeg\", \"webp\"";
        typed("format", formats.into()).map_err(Fault::BadRequest)?;
        let format = match request.format.as_deref() {
            None => Format::default(),
            Some(word) => Format::parse(word)
                .ok_or_else(|| Fault::BadRequest(Field::new("format", &format!("\"{word}\""), formats)))?,
        };
        typed("full_page", "true or false".into()).map_err(Fault::BadRequest)?;
        typed("delay_ms", integer(&limits::DELAY_MS)).map_err(Fault::BadRequest)?;
        let delay_ms = request.delay_ms.unwrap_or(0);
        let delay = match u64::try_from(delay_ms) {
            Ok(ms) if limits::DELAY_MS.contains(&delay_ms) => Duration::from_millis(ms),
            Ok(_) | Err(_) => {
                let seen = delay_ms.to_string();
                return Err(Fault::BadRequest(Field::new("delay_ms", &seen, integer(&limits::DELAY_MS))));
            }
        };
        let selectors = format!("a CSS selector of 1 to {} characters, or null", limits::SELECTOR_CHARS);
        typed("selector", selectors.clone()).map_err(Fault::BadRequest)?;
        let selector = match request.selector.as_deref() {
            // CSS has no NUL, and PostgreSQL cannot keep one.
            Some(text)
                if text.trim().is_empty() || text.contains('\0') || text.chars().count() > limits::SELECTOR_CHARS =>
            {
                return Err(Fault::BadRequest(Field::new("selector", &format!("\"{text}\""), selectors)));
            }
            text => text.map(|text| Selector(text.to_owned())),
        };
        typed("async", "true, false, 1 or 0".into()).map_err(Fault::BadRequest)?;
        Ok(Self { url, viewport, format, full_page: request.full_page.unwrap_or(false), delay, selector })
    }

    /// The height a Grab reports: the viewport's, or the contract's constant for a full page.
    pub const fn reported_height(&self) -> u32 {
        match self.full_page {
            true => limits::FULL_PAGE_REPORTED_HEIGHT,
            false => self.viewport.height(),
        }
    }
}

/// How a spec is kept: every effective option in a fixed order, which is also what a fingerprint is taken of.
#[derive(Serialize, Deserialize)]
struct Kept {
    url: String,
    width: u32,
    height: u32,
    format: Format,
    full_page: bool,
    delay_ms: u64,
    selector: Option<Selector>,
}

impl Serialize for CaptureSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { url, viewport, format, full_page, delay, selector } = self;
        Kept {
            url: url.as_str().to_owned(),
            width: viewport.width,
            height: viewport.height,
            format: *format,
            full_page: *full_page,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(0),
            selector: selector.clone(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CaptureSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Kept { url, width, height, format, full_page, delay_ms, selector } = Kept::deserialize(deserializer)?;
        Ok(Self {
            url: TargetUrl::restore(&url).ok_or_else(|| serde::de::Error::custom("url is not one that was kept"))?,
            viewport: Viewport { width, height },
            format,
            full_page,
            delay: Duration::from_millis(delay_ms),
            selector,
        })
    }
}

impl fmt::Display for Viewport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

fn side(name: &'static str, value: i64, range: RangeInclusive<i64>) -> Result<u32, Fault> {
    match u32::try_from(value) {
        Ok(pixels) if range.contains(&value) => Ok(pixels),
        Ok(_) | Err(_) => Err(Fault::InvalidViewport(Field::new(name, &value.to_string(), integer(&range)))),
    }
}

fn integer(range: &RangeInclusive<i64>) -> String {
    format!("an integer from {} to {}", range.start(), range.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> CaptureRequest {
        CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() }
    }

    fn parse(request: &CaptureRequest) -> Result<CaptureSpec, Fault> {
        CaptureSpec::parse(request)
    }

    #[test]
    fn defaults_are_the_contracts() {
        let spec = parse(&request()).unwrap();
        assert_eq!((spec.viewport.width(), spec.viewport.height()), (1280, 720));
        assert_eq!((spec.format, spec.full_page, spec.delay), (Format::Png, false, Duration::ZERO));
        assert_eq!(spec.selector, None);
        assert_eq!(spec.reported_height(), 720);
    }

    #[test]
    fn bounds_are_inclusive_and_have_their_codes() {
        type Set = fn(&mut CaptureRequest, i64);
        let fields: [(Set, i64, i64, &str); 3] = [
            (|r, v| r.width = Some(v), 320, 1920, "invalid_viewport"),
            (|r, v| r.height = Some(v), 240, 1080, "invalid_viewport"),
            (|r, v| r.delay_ms = Some(v), 0, 10_000, "bad_request"),
        ];
        for (set, least, most, code) in fields {
            for (value, good) in [(least, true), (most, true), (least - 1, false), (most + 1, false), (i64::MAX, false)]
            {
                let mut request = request();
                set(&mut request, value);
                assert_eq!(parse(&request).map_err(|f| f.code().as_str()).err(), (!good).then_some(code), "{value}");
            }
        }
    }

    #[test]
    fn the_first_wrong_field_in_the_contracts_order_is_told() {
        let all: Vec<(String, String)> =
            ["selector", "delay_ms", "full_page", "format", "height", "width", "url", "body"]
                .iter()
                .map(|name| ((*name).to_owned(), "[]".to_owned()))
                .collect();
        for wrong in (1..=all.len()).rev() {
            let mut request = request();
            request.unparsed = all[..wrong].to_vec();
            let fault = parse(&request).unwrap_err();
            let first = ["body", "url", "width", "height", "format", "full_page", "delay_ms", "selector"]
                .into_iter()
                .find(|name| request.unparsed.iter().any(|(n, _)| n == name))
                .unwrap();
            assert_eq!(fault.field().unwrap().name, first);
            let viewport = ["width", "height"].contains(&first);
            assert_eq!(fault.code().as_str(), if viewport { "invalid_viewport" } else { "bad_request" });
        }
    }

    #[test]
    fn a_bad_url_comes_before_a_bad_width() {
        let request = CaptureRequest { url: Some("ftp://x".into()), width: Some(1), ..CaptureRequest::default() };
        assert_eq!(parse(&request).unwrap_err().code().as_str(), "bad_request");
        let request = CaptureRequest { width: Some(1), ..CaptureRequest::default() };
        assert_eq!(parse(&request).unwrap_err().field().unwrap().name, "url");
    }

    #[test]
    fn selectors_and_formats() {
        for (selector, good) in [
            ("#a", true),
            ("", false),
            ("  ", false),
            ("a\0", false),
            (&"a".repeat(1024), true),
            (&"a".repeat(1025), false),
        ] {
            let request = CaptureRequest { selector: Some(selector.into()), ..request() };
            assert_eq!(parse(&request).is_ok(), good);
        }
        for (format, good) in
            [("png", true), ("jpeg", true), ("webp", true), ("jpg", false), ("PNG", false), ("", false)]
        {
            let request = CaptureRequest { format: Some(format.into()), ..request() };
            assert_eq!(parse(&request).is_ok(), good, "{format}");
        }
    }

    #[test]
    fn what_is_kept_comes_back() {
        let request = CaptureRequest {
            selector: Some("#a".into()),
            format: Some("webp".into()),
            full_page: Some(true),
            delay_ms: Some(250),
            ..request()
        };
        let spec = parse(&request).unwrap();
        let kept = serde_json::to_string(&spec).unwrap();
        assert_eq!(
            kept,
            r##"{"url":"https://example.com/","width":1280,"height":720,"format":"webp","full_page":true,"delay_ms":250,"selector":"#a"}"##
        );
        assert_eq!(serde_json::from_str::<CaptureSpec>(&kept).unwrap(), spec);
        assert_eq!(spec.reported_height(), 3240);
    }
}
