//! Tests of the fixture site over HTTP, and in a browser that is started directly.

use std::net::Ipv4Addr;
use std::process::Stdio;

use image::RgbImage;
use tokio::process::Command;

use super::behaviour::{BLUE, ELEMENT, GREEN, RED};
use super::images::{ARTICLE_MARKS, article_patches, tall_patches};
use super::*;
use crate::pixels::{self, Colour, EXACT};

async fn site() -> Site {
    Site::start(Ipv4Addr::new(127, 0, 0, 2).into()).await.unwrap()
}

/// Captures a page with the browser's own `--screenshot`, which waits for the load event.
async fn screenshot(site: &Site, path: &str, width: u32, height: u32) -> RgbImage {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("shot.png");
    let mut browser = Command::new("chromium-headless-shell");
    browser.args(["--no-sandbox", "--hide-scrollbars", "--virtual-time-budget=3000"]);
    browser.arg(format!("--user-data-dir={}", dir.path().join("profile").display()));
    browser.arg(format!("--window-size={width},{height}")).arg(format!("--screenshot={}", file.display()));
    browser.arg(site.url(path)).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let ended =
        tokio::time::timeout(WAIT_LIMIT, browser.status()).await.expect("the browser did not end in time").unwrap();
    assert!(ended.success(), "{path}: {ended}");
    pixels::decode(&std::fs::read(file).unwrap())
}

#[tokio::test]
async fn article_shows_its_font_scripts_and_images() {
    let site = site().await;
    let image = screenshot(&site, "/article", 1000, 500).await;
    for patch in ARTICLE_MARKS.into_iter().chain(article_patches()) {
        pixels::assert_shows(&image, patch, EXACT);
    }
    for path in ["/article", "/fonts/blocks.woff2", "/fonts/dm-serif-display.woff2", "/images/article-11.webp"] {
        assert_eq!(site.hits(path), 1, "{path}");
    }
}

#[tokio::test]
async fn patches_are_at_their_documented_positions() {
    let site = site().await;
    let image = screenshot(&site, "/element", 640, 1200).await;
    pixels::assert_shows(&image, ELEMENT, EXACT);
    let image = screenshot(&site, "/tall", 640, 1000).await;
    for patch in tall_patches().filter(|patch| patch.is_inside(&image)) {
        pixels::assert_shows(&image, patch, EXACT);
    }
}

#[tokio::test]
async fn single_colour_pages_have_their_colour() {
    let site = site().await;
    let rows: [(&str, Colour); 4] =
        [("/cookie-set", GREEN), ("/cookie-read", GREEN), ("/late/1", GREEN), ("/vh", GREEN)];
    for (path, colour) in rows {
        pixels::assert_all(&screenshot(&site, path, 400, 300).await, colour, EXACT);
    }
    let image = screenshot(&site, "/sticky", 400, 300).await;
    assert!(pixels::is_colour(&image, (200, 59), RED, EXACT));
    assert!(pixels::is_colour(&image, (200, 61), BLUE, EXACT));
}

#[tokio::test]
async fn paths_respond_as_documented() {
    let site = site().await;
    let client = crate::client::client().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let rows = [
        ("/tiny", 200, "content-type", "text/html; charset=utf-8"),
        ("/nowhere", 404, "cache-control", "no-store"),
        ("/status/403", 403, "content-type", "text/html; charset=utf-8"),
        ("/status/503", 503, "content-type", "text/html; charset=utf-8"),
        ("/basic-auth", 401, "www-authenticate", "Basic realm=\"site\""),
        ("/slow/1", 200, "content-type", "text/html; charset=utf-8"),
        ("/redirect?to=http://127.0.0.3:8801/a?b=c", 302, "location", "http://127.0.0.3:8801/a?b=c"),
        ("/loop", 302, "location", "/loop"),
        ("/nocontent", 204, "cache-control", "no-store"),
        ("/download", 200, "content-disposition", "attachment; filename=\"file.bin\""),
        ("/cookie-set", 200, "set-cookie", "visited=1; Path=/; Max-Age=3600"),
        ("/images/article-1.jpeg", 200, "content-type", "image/jpeg"),
        ("/images/article-12.jpeg", 404, "cache-control", "no-store"),
    ];
    for (path, status, name, value) in rows {
        let answer = client.get(site.url(path)).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(answer.headers().get(name).and_then(|value| value.to_str().ok()), Some(value), "{path}");
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        assert_eq!(site.hits(path), 1, "{path}");
    }
    let answer = client.get(site.url("/cookie-read")).header("cookie", "visited=1").send().await.unwrap();
    let [red, green, blue] = RED;
    assert!(answer.text().await.unwrap().contains(&format!("html{{background:rgb({red},{green},{blue})}}")));
    let answer = client.get(site.url("/embed?src=http://a.example/?b=%22%3E%3Cscript%3E")).send().await.unwrap();
    assert!(answer.text().await.unwrap().contains("src=\"http://a.example/?b=&quot;><script>\""));
}

#[tokio::test]
async fn requests_are_counted_before_the_response() {
    let site = site().await;
    let client = crate::client::client().build().unwrap();
    let hanging = client.get(site.url("/hang")).send();
    tokio::select! {
        answer = hanging => panic!("unexpected response: {answer:?}"),
        () = site.wait_for_hits("/hang", 1) => {}
    }
    assert_eq!(site.hits("/hang"), 1);
}

#[tokio::test]
async fn held_page_responds_once_released() {
    let site = site().await;
    let client = crate::client::client().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let post = |path| client.post(site.url(path)).send();
    let mut page = std::pin::pin!(client.get(site.url("/held/tiny")).send());
    tokio::select! {
        answer = &mut page => panic!("unexpected response: {answer:?}"),
        () = site.wait_for_hits("/held/tiny", 1) => {}
    }
    tokio::select! {
        answer = &mut page => panic!("unexpected response: {answer:?}"),
        answer = post("/held/other") => assert_eq!(answer.unwrap().status(), 204),
    }
    let (answer, _) = tokio::try_join!(page, post("/held/tiny")).unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["location"]), (302, &"/tiny".parse().unwrap()));
    // It stays released.
    assert_eq!(client.get(site.url("/held/tiny")).send().await.unwrap().status(), 302);
}
