//! The captured part of the page: one element, or the full page.

use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::FailureReason::RenderFailed;

use crate::rig::{Rig, request};
use crate::site::{Site, html, svg};

const ELEMENTS: &str = "<!doctype html><body style='margin:0;background:white'>
    <div id=a style='position:absolute;left:100px;top:50px;width:200px;height:100px;background:red'></div>
    <div id=b style='position:absolute;left:10px;top:3000px;width:300px;height:150px;background:blue'></div>
    <div id=tall style='position:absolute;left:500px;top:100px;width:40px;height:2000px;background:lime'></div>
    <div style='position:absolute;left:900px;top:100px;width:300px;height:300px;overflow:auto'>
      <div style='height:1000px'></div><div id=inner style='width:100px;height:100px;background:yellow'></div></div>
    <div id=none style='display:none'></div><div id=unseen style='visibility:hidden;width:9px;height:9px'>x</div>
    <div id=flat style='width:100px;height:0'></div><div class=late></div>
    <script>setTimeout(() => { const late = document.createElement('div'); late.id = 'late';
      late.style.cssText = 'position:absolute;left:0;top:400px;width:50px;height:50px;background:black';
      document.body.append(late) }, 700)</script>";

#[tokio::test(flavor = "multi_thread")]
async fn element_is_captured_at_any_position() {
    let site = Site::start(2, [("/", html(ELEMENTS))]).await;
    let rig = Rig::start().await;
    let asked = |selector: &str| CaptureRequest { selector: Some(selector.into()), ..request(&site.url("/")) };
    for (selector, size, colour) in [
        ("#a", (200, 100), "red"),
        ("#b", (300, 150), "blue"),
        ("#tall", (40, 2000), "lime"),
        ("#inner", (100, 100), "yellow"),
        ("#late", (50, 50), "black"),
        ("div", (200, 100), "red"),
    ] {
        let image = rig.capture(asked(selector)).await;
        assert_eq!(image.size(), size, "{selector}");
        assert!(!image.metadata.truncated);
        for (x, y) in [(1, 1), (size.0 - 2, size.1 - 2), (size.0 / 2, size.1 / 2)] {
            assert_eq!(image.colour(x, y), colour, "{selector} at {x},{y}");
        }
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn element_failure_names_the_selector() {
    let site = Site::start(2, [("/", html(ELEMENTS))]).await;
    let rig = Rig::with(&[2], |options| options.settle_budget = std::time::Duration::from_secs(1)).await;
    let asked = |selector: &str| CaptureRequest { selector: Some(selector.into()), ..request(&site.url("/")) };
    for (selector, part) in [
        ("#", "`selector` \"#\" is not a valid CSS selector"),
        ("a[", "is not a valid CSS selector"),
        ("#missing", "matches nothing"),
        ("#none", "not visible"),
        ("#unseen", "not visible"),
        ("#flat", "not visible"),
    ] {
        let (failure, _) = rig.fails(asked(selector)).await;
        assert_eq!(failure.reason, RenderFailed);
        assert!(failure.message.contains(part), "{selector}: {}", failure.message);
    }
    rig.chromium.shutdown().await;
}

/// 5000 px: a hero of viewport height, a fixed bar, a lazy image far down, an image that a script loads when visible.
const TALL: &str = "<!doctype html><body style='margin:0;background:white;height:5000px;position:relative'>
    <div style='position:fixed;top:0;left:0;width:100%;height:40px;background:blue'></div>
    <div style='position:absolute;top:0;left:0;width:60px;height:100vh;background:yellow'></div>
    <img loading=lazy src=/lime.svg style='position:absolute;left:200px;top:4000px;width:100px;height:100px'>
    <img id=seen style='position:absolute;left:400px;top:4500px;width:100px;height:100px'>
    <script>new IntersectionObserver((entries) => entries[0].isIntersecting && (seen.src = '/red.svg')).observe(seen);
    const black = () => { if (innerHeight !== 720) document.body.style.background = 'black' };
    addEventListener('resize', black); new ResizeObserver(black).observe(document.querySelector('div + div'));
    matchMedia('(min-height: 721px)').addEventListener('change', black)</script>";

/// A page in which an element scrolls, and the document does not.
const INNER: &str = "<!doctype html><html style='height:100%'><body style='margin:0;height:100%;display:flex;flex-direction:column;overflow:hidden'>
    <div style='height:50px;background:blue'></div>
    <main style='flex:1;overflow-y:auto;min-height:0'><div style='height:2900px;background:lime'></div>
    <div style='height:50px;background:red'></div></main>";

#[tokio::test(flavor = "multi_thread")]
async fn full_page_capture_matches_what_a_reader_sees() {
    let pages =
        [("/", html(TALL)), ("/inner", html(INNER)), ("/lime.svg", svg("lime").after(300)), ("/red.svg", svg("red"))];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    let asked = |path: &str| CaptureRequest { full_page: Some(true), ..request(&site.url(path)) };

    let tall = rig.capture(asked("/")).await;
    assert_eq!(tall.size(), (1280, 5000));
    assert!(!tall.metadata.truncated);
    assert_eq!(tall.colour(250, 4050), "lime", "a lazy image");
    assert_eq!(tall.colour(450, 4550), "red", "an image that loads when it is visible");
    assert_eq!(tall.colour(600, 20), "blue", "the bar");
    let bars = (0..5000).filter(|y| tall.colour(1000, *y) == "blue").count();
    assert_eq!(bars, 40, "the bar appears once");
    assert_eq!(tall.colour(30, 700), "yellow", "the hero has the height of the viewport");
    assert_eq!(tall.colour(30, 740), "white", "the hero is not higher");
    assert_eq!(tall.colour(1000, 3000), "white", "the viewport kept its size");

    let inner = rig.capture(asked("/inner")).await;
    assert_eq!(inner.size(), (1280, 3000));
    assert_eq!([inner.colour(9, 20), inner.colour(9, 2000), inner.colour(9, 2980)], ["blue", "lime", "red"]);

    let short = rig.capture(CaptureRequest { full_page: Some(true), ..request(&site.url("/lime.svg")) }).await;
    assert_eq!(short.size(), (1280, 720));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_page_is_truncated_and_reported() {
    let endless = "<body style='margin:0'><div style='height:20000px;background:lime'></div>
        <script>addEventListener('scroll', () => document.body.append(document.createElement('hr')))</script>";
    let site = Site::start(2, [("/", html(endless))]).await;
    let rig = Rig::start().await;
    for (format, height) in [("jpeg", 16_384), ("webp", 16_383)] {
        let asked = CaptureRequest {
            full_page: Some(true),
            width: Some(320),
            format: Some(format.into()),
            ..request(&site.url("/"))
        };
        let image = rig.capture(asked).await;
        assert_eq!((image.size(), image.metadata.truncated), ((320, height), true), "{format}");
        assert_eq!(image.colour(100, height - 1), "lime");
    }
    rig.chromium.shutdown().await;
}
