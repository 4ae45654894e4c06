//! Captures hard pages and checks their criteria. `script/bench pictures` measures all of them. The tests use those
//! that do not depend on the speed of the machine, and a third of the full pages.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result};
use grabd_tests::hard::Page;
use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::pixels;
use grabd_tests::site::Site;
use grabd_tests::site::hard::directory;
use serde_json::Value;

/// A second address of the same site, which a browser treats as another site.
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 4));

#[tokio::test(flavor = "multi_thread")]
async fn full_pages_have_the_expected_layout() -> Result<()> {
    check_every_nth("layout/", 3).await
}

#[tokio::test(flavor = "multi_thread")]
async fn lazy_content_is_in_the_image() -> Result<()> {
    check_every_nth("lazy/", 3).await
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_are_captured_completely_and_alone() -> Result<()> {
    check_every_nth("element/", 1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_pages_are_captured_correctly() -> Result<()> {
    check_every_nth("plain/", 1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_glyphs_are_reported() -> Result<()> {
    check_every_nth("glyphs/", 1).await
}

async fn check_every_nth(folder: &str, n: usize) -> Result<()> {
    let allowed = format!("{ALLOWED}/32,{OTHER}/32");
    let app = TestApp::start(1000, &[("egress.allow_cidrs", &allowed)]).await?;
    let site = Site::start_pair(ALLOWED, OTHER).await?;
    let pages = Page::all(&directory(), "/hard/")?.into_iter().filter(|page| page.name.starts_with(folder));
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages.step_by(n) {
        count += 1;
        let found = failed_criteria(&app, &site, &page).await?;
        wrong.extend(found.into_iter().map(|reason| format!("{}: {reason}", page.name)));
    }
    assert!(count > 3, "{folder}: {count} pages");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    app.finish().await
}

async fn failed_criteria(app: &TestApp, site: &Site, page: &Page) -> Result<Vec<String>> {
    let (status, grab) = app.create(page.request(&site.url(&page.path))).await?;
    if status != 200 {
        return Ok(vec![format!("{status} {grab}")]);
    }
    let url = grab["image_url"].as_str().context("a done grab has an image_url")?;
    let image = app.client.get(url).send().await?.error_for_status()?.bytes().await?;
    let mut wrong = page.check(&pixels::decode(&image));
    let warnings: Vec<&str> = grab["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for expected in &page.warnings {
        if !warnings.iter().any(|warning| warning.split(':').next() == Some(expected)) {
            wrong.push(format!("expected the warning {expected}, got {warnings:?}"));
        }
    }
    Ok(wrong)
}
