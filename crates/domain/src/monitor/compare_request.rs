//! Validation of what a monitor compares.

use grabd_options::{Kind, Rectangle, Value};

use super::compare::{Baseline, Compare, ImageCompare};
use super::text::{PATTERNS, TextCompare};
use crate::capture::CaptureSpec;
use crate::faults::{Fault, Field};

/// The most bytes that the selectors of ignored elements have together. They are stored and listed with each monitor.
const IGNORED_BYTES: usize = 4096;
/// The most rectangles that are ignored.
pub const MAX_IGNORED_AREAS: usize = 20;
/// The largest number of pixels of a region that may not count.
pub const MAX_REGION_PX: u32 = 1_000_000;

pub(super) const IGNORED: &str = "an array of CSS selectors and rectangles";
pub(super) const REGION_PIXELS: &str = "an integer from 0 to 1000000";
pub(super) const RATIO: &str = "a number from 0 to 1";
pub(super) const BASELINE: &str = "\"latest\" or \"accepted\"";

/// What is compared.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names of the API")]
pub struct CompareRequest {
    pub image: Option<ImageCompareRequest>,
    pub status: Option<bool>,
    pub text: Option<TextCompareRequest>,
    pub elements: Option<bool>,
    pub baseline: Option<String>,
}

/// How images are compared.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names of the API")]
pub struct ImageCompareRequest {
    pub threshold_ratio: Option<f64>,
    pub ignore: Vec<String>,
    /// The rectangles in `ignore`.
    pub ignore_areas: Vec<Rectangle>,
    pub min_region_px: Option<i64>,
}

/// How texts are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the API")]
pub struct TextCompareRequest {
    pub ignore_patterns: Vec<String>,
}

impl CompareRequest {
    /// Validates the request.
    ///
    /// # Errors
    /// The first invalid member.
    pub(super) fn parse(&self) -> Result<Compare, Fault> {
        let Self { image, status, text, elements, baseline } = self;
        let baseline = match baseline {
            None => Baseline::default(),
            Some(text) => Baseline::parse(text).ok_or_else(|| refused("baseline", &format!("\"{text}\""), BASELINE))?,
        };
        let image = image.as_ref().map(ImageCompareRequest::parse).transpose()?;
        let text = text.as_ref().map(|text| TextCompare::parse(&text.ignore_patterns)).transpose();
        let text = text.map_err(|seen| refused("text.ignore_patterns", &seen, PATTERNS))?;
        let (status, elements) = (status.unwrap_or(false), elements.unwrap_or(false));
        // Without a choice, images are compared.
        let has_choice = image.is_some() || status || text.is_some() || elements;
        let image = if has_choice { image } else { Some(ImageCompare::default()) };
        Ok(Compare { image, status, text, elements, baseline })
    }
}

impl ImageCompareRequest {
    fn parse(&self) -> Result<ImageCompare, Fault> {
        let Self { threshold_ratio, ignore, ignore_areas, min_region_px } = self;
        let threshold_ppm = match threshold_ratio {
            None => ImageCompare::default().threshold_ppm,
            Some(ratio) => ppm(*ratio).ok_or_else(|| refused("image.threshold_ratio", &ratio.to_string(), RATIO))?,
        };
        if let Some(hide) = grabd_options::find("hide") {
            let check = hide.check(&Value::Texts(ignore.clone()));
            check.map_err(|problem| refused("image.ignore", &problem.seen, &problem.allowed))?;
        }
        let bytes: usize = ignore.iter().map(String::len).sum();
        if bytes > IGNORED_BYTES {
            let allowed = format!("CSS selectors that take at most {IGNORED_BYTES} bytes together");
            return Err(refused("image.ignore", &format!("{bytes} bytes"), &allowed));
        }
        check_areas(ignore_areas)?;
        let min_region_px = match min_region_px {
            None => 0,
            Some(given) => {
                let pixels = u32::try_from(*given).ok().filter(|pixels| *pixels <= MAX_REGION_PX);
                pixels.ok_or_else(|| refused("image.min_region_px", &given.to_string(), REGION_PIXELS))?
            }
        };
        Ok(ImageCompare { threshold_ppm, ignore: ignore.clone(), ignore_areas: ignore_areas.clone(), min_region_px })
    }
}

fn refused(member: &'static str, seen: &str, allowed: &str) -> Fault {
    Fault::BadRequest(Field::new("compare", seen, allowed).in_member(Some(member)))
}

fn check_areas(areas: &[Rectangle]) -> Result<(), Fault> {
    if areas.len() > MAX_IGNORED_AREAS {
        let allowed = format!("an array with at most {MAX_IGNORED_AREAS} rectangles");
        return Err(refused("image.ignore", &format!("{} rectangles", areas.len()), &allowed));
    }
    let Some(clip) = grabd_options::find("clip") else { return Ok(()) };
    for area in areas {
        clip.check(&Value::Rectangle(*area)).map_err(|problem| {
            let allowed = format!("an array in which each rectangle is {}", problem.allowed);
            refused("image.ignore", &problem.seen, &allowed)
        })?;
    }
    Ok(())
}

/// Millionths of a ratio from 0 to 1.
fn ppm(ratio: f64) -> Option<u32> {
    if !(0.0..=1.0).contains(&ratio) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 1,000,000")]
    let ppm = (ratio * 1e6).round() as u32;
    Some(ppm)
}

/// Checks that a capture has what is compared.
///
/// # Errors
/// The first member that does not fit the capture.
pub(super) fn check(capture: &CaptureSpec, compare: &Compare) -> Result<(), Fault> {
    if let Some(image) = &compare.image {
        check_ignored(capture, image)?;
    }
    // Both would contain what the capture masks.
    for (is_compared, member, contains) in
        [(compare.text.is_some(), "text", "a text contains"), (compare.elements, "elements", "they contain")]
    {
        if is_compared && !capture.mask.is_empty() {
            let allowed = format!("left out where `mask` is used, since {contains} what is masked");
            return Err(refused(member, "", &allowed));
        }
    }
    Ok(())
}

/// Checks that hidden and ignored elements together are not more than a capture may hide, and that the place of rectangles in the
/// image is known.
fn check_ignored(capture: &CaptureSpec, image: &ImageCompare) -> Result<(), Fault> {
    let is_scaled = capture.fit.width.is_some() || capture.fit.height.is_some();
    if is_scaled && !image.ignore_areas.is_empty() {
        let allowed = "an array without rectangles where `fit_width` or `fit_height` is used, which scale the image";
        return Err(refused("image.ignore", "a rectangle", allowed));
    }
    let Some(Kind::Selectors { max }) = grabd_options::find("hide").map(|option| option.kind) else { return Ok(()) };
    if hidden(capture.changes.hide.clone(), &image.ignore).len() <= max {
        return Ok(());
    }
    let allowed = format!("an array of at most {max} CSS selectors, together with those of `hide`");
    Err(refused("image.ignore", &format!("{} selectors", image.ignore.len()), &allowed))
}

/// The elements that a run hides.
pub(super) fn hidden(mut hide: Vec<String>, ignored: &[String]) -> Vec<String> {
    for selector in ignored {
        if !hide.contains(selector) {
            hide.push(selector.clone());
        }
    }
    hide
}
