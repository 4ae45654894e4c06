//! What is captured: pages of the fixture site, and the sizes of their images.

use anyhow::Context;
use serde::Deserialize;

/// A page of the fixture site.
#[derive(Clone, Copy)]
pub(super) struct Page {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) full_page: bool,
    /// What the page is like, for the report.
    pub(super) about: &'static str,
}

pub(super) const PAGES: [Page; 4] = [
    Page { name: "tiny", path: "/tiny", full_page: false, about: "a line of text" },
    Page {
        name: "article",
        path: "/article",
        full_page: false,
        about: "text in several scripts, two web fonts, twelve images, content from a request after the load",
    },
    Page {
        name: "dashboard",
        path: "/dashboard",
        full_page: false,
        about: "cards, two charts and a table, each from a request after the load",
    },
    Page { name: "tall", path: "/tall", full_page: true, about: "a full page of 20,000 pixels with forty lazy images" },
];

/// The viewport of all captures, in CSS pixels.
pub(super) const VIEWPORT: (u32, u32) = (1280, 720);

/// The size of an image, in pixels and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ImageSize {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) bytes: usize,
}

impl ImageSize {
    /// Reads the size from the header of a PNG (RFC 2083, section 4.1.1).
    pub(super) fn of_png(png: &[u8]) -> anyhow::Result<Self> {
        anyhow::ensure!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "the image is not a PNG");
        let number = |at: usize| {
            let bytes = png.get(at..at + 4).context("the PNG has no header")?;
            anyhow::Ok(u32::from_be_bytes(bytes.try_into()?))
        };
        Ok(Self { width: number(16)?, height: number(20)?, bytes: png.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::ImageSize;

    #[test]
    fn the_size_is_read_from_the_header() {
        let mut png = Vec::new();
        image::RgbImage::new(31, 7).write_to(&mut std::io::Cursor::new(&mut png), image::ImageFormat::Png).unwrap();
        assert_eq!(ImageSize::of_png(&png).unwrap(), ImageSize { width: 31, height: 7, bytes: png.len() });
        for wrong in [&png[..20], b"GIF89a".as_slice(), b""] {
            ImageSize::of_png(wrong).unwrap_err();
        }
    }
}
