//! The site's images. Each has a unique colour in its middle, and the pages place each at a known position.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use image::{ImageFormat, Rgb, RgbImage};

use super::behaviour::{BLUE, GREEN, RED};
use super::scenes;
use crate::pixels::{Colour, Patch};

/// Images on `/article`, all visible in a viewport of 1000x500.
pub const ARTICLE_IMAGES: u32 = 12;
/// Lazy images on `/tall`, one per 500 pixels.
pub const TALL_IMAGES: u32 = 40;
/// Lazy images on `/heavy`, below the first viewport.
pub const HEAVY_IMAGES: u32 = 24;

/// The squares of `/article` that show whether its web font, its script and the script's data were loaded, in this
/// order.
pub const ARTICLE_MARKS: [Patch; 3] = [
    Patch { x: 40, y: 30, width: 40, height: 40, colour: GREEN },
    Patch { x: 100, y: 30, width: 40, height: 40, colour: BLUE },
    Patch { x: 160, y: 30, width: 40, height: 40, colour: RED },
];

/// The positions of the colours of `/article`'s images.
pub fn article_patches() -> impl Iterator<Item = Patch> {
    (0..ARTICLE_IMAGES).map(|n| Patch {
        x: 600 + 120 * (n % 3) + 25,
        y: 120 + 100 * (n / 3) + 20,
        width: 50,
        height: 40,
        colour: colour(n),
    })
}

/// The positions of the colours of `/tall`'s images.
pub fn tall_patches() -> impl Iterator<Item = Patch> {
    (0..TALL_IMAGES).map(|n| Patch { x: 200, y: 500 * n + 100, width: 300, height: 200, colour: colour(100 + n) })
}

/// Colours that differ enough from their neighbours, from white and from black.
fn colour(n: u32) -> Colour {
    [67, 151, 29].map(|step| (40 + (n + 1) * step % 160) as u8)
}

/// Side of a grain in pixels. With it, the twelve images of `/article` have about 140 KB.
const GRAIN: u32 = 3;

/// Generated images by file name.
type GeneratedImages = Arc<Mutex<HashMap<String, Option<Bytes>>>>;

pub(super) fn routes() -> Router {
    Router::new().route("/images/{name}", get(serve)).with_state(GeneratedImages::default())
}

async fn serve(State(images): State<GeneratedImages>, Path(name): Path<String>) -> Response {
    // Under the lock, so that concurrent requests generate an image once.
    let file = images
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(name)
        .or_insert_with_key(|name| generate(name))
        .clone();
    let media = file.as_ref().and_then(|file| image::guess_format(file).ok()).map(|format| format.to_mime_type());
    match (file, media) {
        (Some(file), Some(media)) => ([(CONTENT_TYPE, media)], file).into_response(),
        (Some(_) | None, Some(_) | None) => StatusCode::NOT_FOUND.into_response(),
    }
}

fn generate(name: &str) -> Option<Bytes> {
    let (name, ending) = name.split_once('.')?;
    let (kind, which) = name.split_once('-')?;
    let number = || which.parse::<u32>().ok();
    let image = match kind {
        "article" => colour_in_frame(300, 240, colour(number().filter(|n| *n < ARTICLE_IMAGES)?)),
        "heavy" => colour_in_frame(400, 300, colour(200 + number().filter(|n| *n < HEAVY_IMAGES)?)),
        "tall" => RgbImage::from_pixel(300, 200, Rgb(colour(100 + number().filter(|n| *n < TALL_IMAGES)?))),
        "scene" => scenes::paint(which)?,
        _ => return None,
    };
    let mut file = Cursor::new(Vec::new());
    image.write_to(&mut file, ImageFormat::from_extension(ending)?).ok()?;
    Some(file.into_inner().into())
}

/// A colour inside a grainy frame: the frame gives the file the size of a photograph, the middle stays exact.
fn colour_in_frame(width: u32, height: u32, colour: Colour) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let inside = (width / 5..width - width / 5).contains(&x) && (height / 5..height - height / 5).contains(&y);
        let lighter = (scatter(x / GRAIN, y / GRAIN) % 8) as u8 * 4;
        Rgb(if inside { colour } else { colour.map(|channel| channel.saturating_add(lighter)) })
    })
}

/// A deterministic pseudo-random number.
pub(super) fn scatter(x: u32, y: u32) -> u32 {
    let mut hash = x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca77);
    hash = (hash ^ (hash >> 15)).wrapping_mul(0x2c1b_3c6d);
    hash ^ (hash >> 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_a_page_have_distinct_colours() {
        for patches in [article_patches().collect::<Vec<_>>(), tall_patches().collect()] {
            for (at, one) in patches.iter().enumerate() {
                for other in &patches[..at] {
                    let apart = one.colour.iter().zip(other.colour).map(|(a, b)| a.abs_diff(b)).max();
                    assert!(apart > Some(2 * crate::pixels::EXACT), "{one:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn images_have_the_format_of_their_extension_and_unknown_names_do_not_exist() {
        for name in ["article-0.png", "article-11.webp", "tall-39.png", "heavy-23.jpeg", "scene-dusk.webp"] {
            let format = ImageFormat::from_extension(name.split_once('.').unwrap().1).unwrap();
            assert_eq!(image::guess_format(&generate(name).unwrap()).unwrap(), format, "{name}");
        }
        for name in ["article-12.png", "tall-40.png", "tall-x.png", "tall.png", "article-0.txt", "scene-tea.png", "x"] {
            assert_eq!(generate(name), None, "{name}");
        }
    }
}
