//! The page that is captured: forty resources of five origins, and what its image must show.

use std::fmt::Write as _;

use image::RgbImage;

/// The hosts of the page: of the document, the style and the script, images, more images, and the data. Each has a certificate
/// of its own, so that they do not share connections.
pub(super) const HOSTS: [&str; 5] =
    ["www.shop.test", "static.shop.test", "images.shop.test", "photos.media.test", "data.shop.test"];

/// Images. With the style, the script and the data, there are forty resources beside the document.
pub(super) const TILES: u32 = 37;
/// Bytes of an image that are not needed to draw it.
const PADDING: usize = 8 << 10;
/// Tiles in a row, the distance of two, and the place of the first one, in CSS pixels.
const COLUMNS: u32 = 10;
const DISTANCE: u32 = 100;
const MARGIN: u32 = 20;
const SIDE: u32 = 80;
/// The colour that the style gives the page.
const BACKGROUND: [u8; 3] = [0xf0, 0xf4, 0xf8];
/// How much a channel of a pixel may differ.
const TOLERANCE: u8 = 8;

/// The document, whose resources are at this port.
pub(super) fn document(port: u16) -> String {
    let [_, files, ..] = HOSTS;
    let mut html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Shop</title>\
         <link rel=stylesheet href='https://{files}:{port}/style.css'>\
         <script defer src='https://{files}:{port}/app.js'></script><body>"
    );
    for tile in 0..TILES {
        let [document, _, images, photos, _] = HOSTS;
        let host = [document, images, photos][tile as usize % 3];
        let _ = write!(html, "<img class=tile alt='' src='https://{host}:{port}/tile/{tile}' style='{}'>", place(tile));
    }
    let _ = write!(html, "<div class=tile id=late style='{}'></div>", place(TILES));
    html
}

pub(super) fn style() -> String {
    format!(
        "body {{ margin: 0; background: {} }} .tile {{ position: absolute; width: {SIDE}px; height: {SIDE}px }}",
        hex(BACKGROUND)
    )
}

/// Requests data after the load, and shows it.
pub(super) fn script(port: u16) -> String {
    let [.., data] = HOSTS;
    format!(
        "addEventListener('load', async () => {{
           const answer = await fetch('https://{data}:{port}/late.json');
           document.getElementById('late').style.background = (await answer.json()).colour;
         }});"
    )
}

pub(super) fn late_data() -> String {
    format!("{{\"colour\":\"{}\"}}", hex(colour(TILES)))
}

pub(super) fn tile(number: u32) -> String {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 80 80'><!--{}-->\
         <rect width='80' height='80' fill='{}'/></svg>",
        " ".repeat(PADDING),
        hex(colour(number))
    )
}

/// Whether an image shows the whole page.
pub(super) fn is_right(image: &RgbImage) -> bool {
    let shows = |x: u32, y: u32, colour: [u8; 3]| {
        let pixel = image.get_pixel_checked(x, y).map(|pixel| pixel.0);
        pixel.is_some_and(|pixel| pixel.iter().zip(colour).all(|(seen, wanted)| seen.abs_diff(wanted) <= TOLERANCE))
    };
    let middle = SIDE / 2;
    let has_tile = |tile: u32| {
        let (x, y) = corner(tile);
        shows(x + middle, y + middle, colour(tile))
    };
    shows(MARGIN / 2, MARGIN / 2, BACKGROUND) && (0..=TILES).all(has_tile)
}

/// The colour of a tile. The last one is that of the data.
fn colour(tile: u32) -> [u8; 3] {
    let step = u8::try_from(tile).unwrap_or(u8::MAX);
    [step.saturating_mul(5), 200_u8.saturating_sub(step.saturating_mul(4)), 90]
}

fn corner(tile: u32) -> (u32, u32) {
    (MARGIN + tile % COLUMNS * DISTANCE, MARGIN + tile / COLUMNS * DISTANCE)
}

fn place(tile: u32) -> String {
    let (x, y) = corner(tile);
    format!("left:{x}px;top:{y}px")
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    #[test]
    fn image_is_right_if_the_style_and_all_tiles_are_there() {
        let mut image = RgbImage::from_pixel(1280, 720, Rgb(BACKGROUND));
        for tile in 0..=TILES {
            assert!(!is_right(&image), "without tile {tile}");
            let (left, top) = corner(tile);
            for (x, y) in (0..SIDE).flat_map(|x| (0..SIDE).map(move |y| (x, y))) {
                image.put_pixel(left + x, top + y, Rgb(colour(tile)));
            }
        }
        assert!(is_right(&image));
        image.put_pixel(MARGIN / 2, MARGIN / 2, Rgb([255, 255, 255]));
        assert!(!is_right(&image));
        assert!(!is_right(&RgbImage::new(1, 1)));
    }
}
