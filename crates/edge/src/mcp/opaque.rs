//! Images without transparency.

use image::{DynamicImage, RgbImage};

/// Draws the image on white, because JPEG has no transparency.
pub(super) fn opaque(decoded: &DynamicImage) -> RgbImage {
    if !decoded.color().has_alpha() {
        return decoded.to_rgb8();
    }
    let decoded = decoded.to_rgba8();
    RgbImage::from_fn(decoded.width(), decoded.height(), |x, y| {
        let [red, green, blue, alpha] = decoded.get_pixel(x, y).0;
        let on_white = |channel: u8| {
            let mixed = u32::from(channel) * u32::from(alpha) + 255 * (255 - u32::from(alpha));
            u8::try_from(mixed / 255).unwrap_or(u8::MAX)
        };
        image::Rgb([on_white(red), on_white(green), on_white(blue)])
    })
}
