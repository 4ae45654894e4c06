//! Criteria for images of hard pages.

use std::ops::RangeInclusive;
use std::str::FromStr;

use anyhow::{Context, bail};
use grabd_areas::{Area, Colour, is_colour};
use image::{Rgb, RgbImage};

use super::colour;

/// Allowed difference per channel.
const TOLERANCE: u8 = 12;
/// Areas with fewer pixels are not blocks: edges of glyphs and of scaled images contain such areas.
const BLOCK_PX: usize = 100;
/// Fewer pixels count as none.
const NONE_PX: usize = 20;

/// One criterion.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// Width and height of the image.
    Size(Range, Range),
    /// The colour of a pixel. Negative coordinates count from the right and the bottom.
    At(i64, i64, NamedColour),
    /// The number of blocks of a colour.
    Blocks(NamedColour, Range),
    /// Width and height of a colour's largest block.
    Block(NamedColour, i64, i64),
    /// The bounding box of all pixels of a colour: left, top, width, height.
    Bounds(NamedColour, [i64; 4]),
    /// The number of pixels of a colour.
    Area(NamedColour, Range),
    /// A colour does not occur.
    None(NamedColour),
    /// The minimum number of different colours.
    Colours(usize),
}

/// A colour and the name it was given by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedColour(String, Colour);

/// Accepted values.
pub type Range = RangeInclusive<i64>;

impl FromStr for Expectation {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let read = || -> anyhow::Result<Self> {
            Ok(match words.as_slice() {
                ["size", size] => {
                    let (width, height) = size.split_once('x').context("WxH")?;
                    Self::Size(range(width)?, range(height)?)
                }
                ["at", place, colour] => {
                    let (x, y) = pair(place, ',')?;
                    Self::At(x, y, named(colour)?)
                }
                ["blocks", colour, count] => Self::Blocks(named(colour)?, range(count)?),
                ["block", colour, size] => {
                    let (width, height) = pair(size, 'x')?;
                    Self::Block(named(colour)?, width, height)
                }
                ["box", colour, place, size] => {
                    let ((x, y), (width, height)) = (pair(place, ',')?, pair(size, 'x')?);
                    Self::Bounds(named(colour)?, [x, y, width, height])
                }
                ["area", colour, count] => Self::Area(named(colour)?, range(count)?),
                ["none", colour] => Self::None(named(colour)?),
                ["colours", count] => Self::Colours(count.parse()?),
                _ => bail!("unknown criterion"),
            })
        };
        read().with_context(|| format!("`{text}`"))
    }
}

impl Expectation {
    /// Checks the criterion.
    ///
    /// # Errors
    /// The expected and the actual value.
    pub fn check(&self, image: &RgbImage) -> Result<(), String> {
        let (width, height) = (i64::from(image.width()), i64::from(image.height()));
        let mismatch = |expected: String, seen: String| Err(format!("expected {expected}, saw {seen}"));
        match self {
            Self::Size(wide, tall) if wide.contains(&width) && tall.contains(&height) => Ok(()),
            Self::Size(wide, tall) => mismatch(format!("size {wide:?} x {tall:?}"), format!("{width} x {height}")),
            Self::At(x, y, named) => {
                let from_end = |at: i64, length: i64| if at < 0 { length + at } else { at };
                let place = (u32::try_from(from_end(*x, width)), u32::try_from(from_end(*y, height)));
                let seen = match place {
                    (Ok(x), Ok(y)) => image.get_pixel_checked(x, y),
                    _ => None,
                };
                match seen {
                    Some(pixel) if is_colour(pixel, named.1, TOLERANCE) => Ok(()),
                    Some(Rgb(seen)) => mismatch(format!("{} at {x},{y}", named.0), format!("{seen:?}")),
                    None => mismatch(format!("{} at {x},{y}", named.0), "nothing: the image is smaller".into()),
                }
            }
            Self::Blocks(named, count) => {
                let blocks = i64::try_from(blocks(image, named.1).count()).unwrap_or(i64::MAX);
                match count.contains(&blocks) {
                    true => Ok(()),
                    false => mismatch(format!("{count:?} blocks of {}", named.0), blocks.to_string()),
                }
            }
            Self::Block(named, wide, tall) => {
                let largest = blocks(image, named.1).max_by_key(|block| block.pixels);
                match largest.map(size) {
                    Some((w, h)) if w.abs_diff(*wide) <= 2 && h.abs_diff(*tall) <= 2 => Ok(()),
                    Some((w, h)) => mismatch(format!("a block of {} of {wide}x{tall}", named.0), format!("{w}x{h}")),
                    None => mismatch(format!("a block of {}", named.0), "none".into()),
                }
            }
            Self::Bounds(named, expected) => {
                let Some(area) = grabd_areas::bounds(image, named.1, TOLERANCE) else {
                    return mismatch(format!("{} in {expected:?}", named.0), "no such pixel".into());
                };
                let (w, h) = size(area);
                let seen = [i64::from(area.left), i64::from(area.top), w, h];
                match seen.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= 3) {
                    true => Ok(()),
                    false => mismatch(format!("{} in {expected:?}", named.0), format!("{seen:?}")),
                }
            }
            Self::Area(named, count) => {
                let pixels = i64::try_from(pixels(image, named.1)).unwrap_or(i64::MAX);
                match count.contains(&pixels) {
                    true => Ok(()),
                    false => mismatch(format!("{count:?} pixels of {}", named.0), pixels.to_string()),
                }
            }
            Self::None(named) => match pixels(image, named.1) {
                few if few < NONE_PX => Ok(()),
                many => mismatch(format!("no {}", named.0), format!("{many} pixels")),
            },
            Self::Colours(least) => match grabd_areas::colours(image) {
                many if many >= *least => Ok(()),
                few => mismatch(format!("{least} colours"), few.to_string()),
            },
        }
    }
}

/// The connected areas of a colour, without small ones.
fn blocks(image: &RgbImage, colour: Colour) -> impl Iterator<Item = Area> {
    grabd_areas::areas(image, colour, TOLERANCE).into_iter().filter(|area| area.pixels >= BLOCK_PX)
}

/// Width and height of an area.
fn size(area: Area) -> (i64, i64) {
    let (width, height) = area.size();
    (i64::from(width), i64::from(height))
}

/// The number of pixels of a colour.
fn pixels(image: &RgbImage, colour: Colour) -> usize {
    grabd_areas::count(image, colour, TOLERANCE)
}

fn named(name: &str) -> anyhow::Result<NamedColour> {
    Ok(NamedColour(name.to_owned(), colour(name).with_context(|| format!("unknown colour {name}"))?))
}

fn pair(text: &str, between: char) -> anyhow::Result<(i64, i64)> {
    let (first, second) =
        text.split_once(between).with_context(|| format!("expected two numbers separated by {between}"))?;
    Ok((first.parse()?, second.parse()?))
}

fn range(text: &str) -> anyhow::Result<Range> {
    Ok(match text.split_once("..") {
        None => {
            let number = text.parse()?;
            number..=number
        }
        Some((least, most)) => {
            let least = if least.is_empty() { 0 } else { least.parse()? };
            let most = if most.is_empty() { i64::MAX } else { most.parse()? };
            least..=most
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// White, 60 x 40, with two red blocks of 20 x 10 and one of 30 x 10.
    fn image() -> RgbImage {
        let red = |x: u32, y: u32| match y {
            5..15 => (5..25).contains(&x) || (30..50).contains(&x),
            20..30 => (10..40).contains(&x),
            _ => false,
        };
        RgbImage::from_fn(60, 40, |x, y| Rgb(if red(x, y) { [250, 5, 0] } else { [255, 255, 255] }))
    }

    #[test]
    fn criteria_match_or_report_a_mismatch() {
        for (text, holds) in [
            ("size 60x40", true),
            ("size 50..70x..40", true),
            ("size 60x41..", false),
            ("at 5,5 red", true),
            ("at -1,-1 white", true),
            ("at 4,5 red", false),
            ("at 60,0 white", false),
            ("blocks red 3", true),
            ("blocks red 4..", false),
            ("blocks lime 0", true),
            ("block red 30x10", true),
            ("block red 32x12", true),
            ("block red 33x10", false),
            ("block lime 1x1", false),
            ("box red 5,5 45x25", true),
            ("box red 9,5 45x25", false),
            ("area red 700", true),
            ("area red ..699", false),
            ("none lime", true),
            ("none #fa0500", false),
            ("colours 2", true),
            ("colours 3", false),
        ] {
            let result = text.parse::<Expectation>().unwrap().check(&image());
            assert_eq!(result.is_ok(), holds, "{text}: {result:?}");
        }
    }

    #[test]
    fn parse_rejects_malformed_criteria() {
        for text in ["", "size 10", "at 1 red", "blocks pink 1", "none", "block red 1", "area red x", "red"] {
            assert!(text.parse::<Expectation>().is_err(), "{text}");
        }
    }
}
