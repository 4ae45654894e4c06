//! The contact sheet: one image with pairs of images of the same page, side by side.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use grabd_tests::site::Site;
use grabd_tests::site::hard::built;
use serde_json::json;

use crate::service::Service;

/// Two images of one page.
pub(crate) struct Pair {
    /// Name of the page, and what is hard about it.
    pub(crate) page: String,
    pub(crate) about: String,
    pub(crate) ours: PathBuf,
    /// The other tool and its image.
    pub(crate) tool: &'static str,
    pub(crate) theirs: PathBuf,
}

const STYLE: &str = "
  body { margin: 0; padding: 24px; font: 14px/1.4 sans-serif; background: #fff; color: #1b1f24 }
  main { display: grid; grid-template-columns: 1fr 1fr; gap: 28px 32px }
  article { border: 1px solid #d0d7de; border-radius: 8px; padding: 14px }
  h2 { margin: 0 0 2px; font-size: 14px } p { margin: 0 0 10px; height: 40px; overflow: hidden; color: #57606a }
  div { display: grid; grid-template-columns: 1fr 1fr; gap: 12px } figure { margin: 0 }
  img { display: block; width: 100%; height: 240px; object-fit: contain; object-position: top; background: #eaeef2; outline: 1px solid #d0d7de }
  figcaption { margin-top: 4px; font-size: 12px; color: #57606a }
";

/// Captures the sheet with the service and writes it to a file as JPEG.
pub(crate) async fn write(service: &Service, site: &Site, pairs: &[Pair], to: &Path) -> anyhow::Result<()> {
    let directory = built().join("sheet");
    std::fs::create_dir_all(&directory)?;
    let mut html = format!("<!doctype html><meta charset=utf-8><title>Pictures</title><style>{STYLE}</style><main>");
    for (number, pair) in pairs.iter().enumerate() {
        let names = [format!("{number}-ours.png"), format!("{number}-theirs.png")];
        std::fs::copy(&pair.ours, directory.join(&names[0]))?;
        std::fs::copy(&pair.theirs, directory.join(&names[1]))?;
        write!(html, "<article><h2>{}</h2><p>{}</p><div>", escaped(&pair.page), escaped(&pair.about))?;
        for (name, tool) in names.iter().zip(["grabd", pair.tool]) {
            write!(html, "<figure><img src={name} alt=''><figcaption>{tool}</figcaption></figure>")?;
        }
        html.push_str("</div></article>");
    }
    std::fs::write(directory.join("index.html"), html + "</main>")?;
    let body = json!({ "url": site.url("/built/sheet/index.html"), "full_page": true, "format": "jpeg" });
    let (status, grab) = service.capture(&body).await?;
    anyhow::ensure!(status == 200, "the sheet cannot be captured: {grab}");
    std::fs::write(to, service.image(grab["image_url"].as_str().context("an image_url")?).await?)?;
    Ok(std::fs::remove_dir_all(&directory)?)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
