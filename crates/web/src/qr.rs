//! QR codes as SVG paths, because the Content-Security-Policy allows no generated images.

use std::fmt::Write as _;

use qrcode::{Color, QrCode};

/// Light modules around the code, which ISO/IEC 18004 requires.
const QUIET_ZONE: usize = 4;

/// A QR code for an inline SVG of `size` × `size` units.
#[derive(Debug)]
pub(crate) struct QrImage {
    /// Width and height, with the quiet zone.
    pub(crate) size: usize,
    /// The dark modules, as the `d` of a path.
    pub(crate) path: String,
}

impl QrImage {
    /// The code of a text; `None` if it is too long for one.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let code = QrCode::new(text).ok()?;
        let (width, colors) = (code.width(), code.to_colors());
        let mut path = String::new();
        for (y, row) in colors.chunks(width).enumerate() {
            let mut x = 0;
            while x < width {
                let run = row[x..].iter().take_while(|color| **color == row[x]).count();
                if row[x] == Color::Dark {
                    // Writing to a string does not fail.
                    let _ = write!(path, "M{} {}h{run}v1h-{run}z", x + QUIET_ZONE, y + QUIET_ZONE);
                }
                x += run;
            }
        }
        Some(Self { size: width + 2 * QUIET_ZONE, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_an_authenticator_uri_is_small_and_has_its_finder_patterns() {
        let uri = format!(
            "otpauth://totp/grabd%20shots.example.com:{}%40example.com?secret={}&issuer=grabd%20shots.example.com",
            "a".repeat(64),
            "A".repeat(32)
        );
        let image = QrImage::of(&uri).unwrap();
        assert!(image.path.len() < 16_000, "{}", image.path.len());
        // The first row begins and ends with the seven dark modules of two finder patterns.
        let (first, last) = (QUIET_ZONE, image.size - QUIET_ZONE - 7);
        assert!(image.path.starts_with(&format!("M{first} {first}h7v1h-7z")), "{}", image.path);
        assert!(image.path.contains(&format!("M{last} {first}h7v1h-7z")), "{}", image.path);
        assert!(QrImage::of(&"x".repeat(5000)).is_none());
    }
}
