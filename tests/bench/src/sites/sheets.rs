//! Contact sheets: pages of HTML, and images of them, with the picture, the reference and the difference of each pair that
//! differs.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use image::RgbImage;
use image::imageops::{self, FilterType};
use serde_json::json;

use super::folder_site::FolderSite;
use crate::service::Service;

/// Pairs on one sheet.
const PAIRS: usize = 4;
/// Width of an image on a sheet.
const WIDTH: u32 = 400;
/// More of a tall page is not shown, but the part with the first difference.
const TALLEST: u32 = 620;

const STYLE: &str = "
  body { margin: 0; padding: 12px; width: 1256px; font: 13px/1.4 sans-serif; background: #fff; color: #1b1f24 }
  article { margin-bottom: 14px } h2 { margin: 0; font-size: 14px } p { margin: 0 0 4px; color: #57606a }
  div { display: grid; grid-template-columns: repeat(3, 400px); gap: 12px } figure { margin: 0 }
  img { display: block; outline: 1px solid #d0d7de }
";

/// Two pictures that differ.
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) about: String,
    /// The picture, the reference, and their difference. The first is missing if the capture failed.
    pub(super) images: [Option<PathBuf>; 3],
    /// The first row of pixels that differs.
    pub(super) from: u32,
}

/// Makes the sheets in a directory, and images of them with the service. Returns their number.
pub(super) async fn write(
    service: &Service,
    site: &FolderSite,
    at: &str,
    directory: &Path,
    pairs: &[Pair],
) -> anyhow::Result<usize> {
    if directory.is_dir() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir_all(directory)?;
    for (number, group) in pairs.chunks(PAIRS).enumerate() {
        let mut html =
            format!("<!doctype html><meta charset=utf-8><title>Sheet {number}</title><style>{STYLE}</style>");
        for (index, pair) in group.iter().enumerate() {
            write!(html, "<article><h2>{}</h2><p>{}</p><div>", escaped(&pair.name), escaped(&pair.about))?;
            for (kind, path) in ["grabd", "reference", "difference"].into_iter().zip(&pair.images) {
                html.push_str("<figure>");
                if let Some(path) = path.as_ref().filter(|path| path.is_file()) {
                    let name = format!("{number}-{index}-{kind}.png");
                    let image = image::open(path).with_context(|| path.display().to_string())?.to_rgb8();
                    thumbnail(&image, pair.from).save(directory.join(&name))?;
                    write!(html, "<img src={name} alt={kind}>")?;
                }
                html.push_str("</figure>");
            }
            html.push_str("</div></article>");
        }
        let name = format!("sheet-{number:03}");
        fs::write(directory.join(format!("{name}.html")), html)?;
        let url = site.url(&format!("{at}/{name}.html"));
        let (status, grab) = service.capture(&json!({ "url": url, "full_page": true })).await?;
        anyhow::ensure!(status == 200, "the sheet cannot be captured: {grab}");
        let image = service.image(grab["image_url"].as_str().context("an image_url")?).await?;
        fs::write(directory.join(format!("{name}.png")), image)?;
    }
    Ok(pairs.len().div_ceil(PAIRS))
}

fn thumbnail(image: &RgbImage, from: u32) -> RgbImage {
    let width = image.width().max(1);
    let shown = u32::try_from(u64::from(TALLEST) * u64::from(width) / u64::from(WIDTH)).unwrap_or(u32::MAX);
    // Some of what is above the difference shows where it is.
    let latest = image.height().saturating_sub(shown);
    let top = if image.height() > shown { from.saturating_sub(shown / 4).min(latest) } else { 0 };
    let height = image.height().saturating_sub(top).min(shown).max(1);
    let part = imageops::crop_imm(image, 0, top, width, height).to_image();
    let small = (u64::from(height) * u64::from(WIDTH) / u64::from(width)).clamp(1, u64::from(TALLEST));
    imageops::resize(&part, WIDTH, u32::try_from(small).unwrap_or(1), FilterType::Triangle)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
