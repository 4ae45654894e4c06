//! Options that change how a page sees its visitor, what is waited for, and what is changed before the shot.

use std::time::Duration;

use grabd_domain::capture::CaptureRequest;
use grabd_domain::render::Renderer as _;
use grabd_domain::render::{RenderError, RenderTask};
use image::GenericImageView as _;
use serde_json::json;

use crate::rig::{Rig, request, task, with_steps};
use crate::site::{Site, html};

/// A page that is lime if the script's expression is true, and red otherwise.
fn lime_if(expression: &str) -> String {
    format!(
        "<!doctype html><body style='margin:0;background:red'><script>
            document.body.style.background = ({expression}) ? 'lime' : 'red'</script>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn page_sees_the_requested_reader() {
    type Set = fn(&mut CaptureRequest);
    let cases: [(&str, &str, Set); 8] = [
        ("/light", "matchMedia('(prefers-color-scheme: light)').matches", |_| ()),
        ("/dark", "matchMedia('(prefers-color-scheme: dark)').matches", |r| r.color_scheme = Some("dark".into())),
        ("/motion", "matchMedia('(prefers-reduced-motion: reduce)').matches", |r| r.reduced_motion = Some(true)),
        ("/print", "matchMedia('print').matches", |r| r.media = Some("print".into())),
        ("/locale", "navigator.language === 'de-AT' && (1.5).toLocaleString() === '1,5'", |r| {
            r.locale = Some("de-AT".into());
        }),
        ("/timezone", "Intl.DateTimeFormat().resolvedOptions().timeZone === 'Asia/Tokyo'", |r| {
            r.timezone = Some("Asia/Tokyo".into());
        }),
        ("/agent", "navigator.userAgent === 'ExampleBot/1.0'", |r| r.user_agent = Some("ExampleBot/1.0".into())),
        ("/both", "navigator.userAgent === 'Bot' && navigator.language === 'fr'", |r| {
            (r.user_agent, r.locale) = (Some("Bot".into()), Some("fr".into()));
        }),
    ];
    let site = Site::start(2, cases.map(|(path, expression, _)| (path, html(lime_if(expression))))).await;
    let rig = Rig::start().await;
    for (path, expression, set) in cases {
        let mut asked = request(&site.url(path));
        set(&mut asked);
        assert_eq!(rig.capture(asked).await.colour(600, 400), "lime", "{expression}");
        // The next grab of the browser does not have it.
        if path != "/light" {
            assert_eq!(rig.grab(&site.url(path)).await.colour(600, 400), "red", "{expression} without the option");
        }
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn device_sets_viewport_scale_touch_and_user_agent() {
    let page = "<!doctype html><meta name=viewport content='width=device-width'><body style='margin:0;background:red'>
        <script>const is = (width, scale) => innerWidth === width && devicePixelRatio === scale &&
            navigator.maxTouchPoints > 0 && /Android/.test(navigator.userAgent) && matchMedia('(pointer: coarse)').matches;
            document.body.style.background = is(390, 3) ? 'lime' : is(768, 2) ? 'blue' : 'red'</script>
        <div style='height:1500px'></div>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let on = |device: &str| CaptureRequest { device: Some(device.to_owned()), ..request(&site.url("/")) };
    for (device, size, colour) in
        [("phone", (1170, 2532), "lime"), ("tablet", (1536, 2048), "blue"), ("desktop", (1280, 720), "red")]
    {
        let image = rig.capture(on(device)).await;
        assert_eq!((image.size(), image.colour(300, 400)), (size, colour), "{device}");
    }
    let whole = rig.capture(CaptureRequest { full_page: Some(true), ..on("phone") }).await;
    assert_eq!((whole.size(), whole.colour(300, 4400)), ((1170, 4500), "lime"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn model_sets_viewport_scale_touch_and_user_agent() {
    let page = "<!doctype html><meta name=viewport content='width=device-width'><body style='margin:0;background:red'>
        <script>const is = (width, scale, agent) => innerWidth === width && devicePixelRatio === scale && agent.test(navigator.userAgent);
            const hasTouch = navigator.maxTouchPoints > 0 && matchMedia('(pointer: coarse)').matches;
            const isPhone = is(393, 3, /iPhone.*Safari/) && navigator.platform === 'iPhone' && !navigator.userAgentData?.mobile;
            document.body.style.background = isPhone && hasTouch ? 'lime'
                : is(1180, 2, /iPad/) && hasTouch ? 'blue'
                : is(1920, 1, /Linux/) && !hasTouch ? 'yellow' : 'red'</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let on = |device: &str| CaptureRequest { device: Some(device.to_owned()), ..request(&site.url("/")) };
    for (device, size, colour) in [
        ("iphone-15", (1179, 2556), "lime"),
        ("ipad-10", (2360, 1640), "blue"),
        ("desktop-1080p", (1920, 1080), "yellow"),
    ] {
        let image = rig.capture(on(device)).await;
        assert_eq!((image.size(), image.colour(300, 400)), (size, colour), "{device}");
    }
    let small = CaptureRequest { width: Some(400), scale: Some(1.0), ..on("iphone-15") };
    assert_eq!(rig.capture(small).await.size(), (400, 852));
    rig.chromium.shutdown().await;
}

/// A page with a red and a lime half.
const HALVES: &str = "<!doctype html><body style='margin:0;background:red'>
    <div style='margin-left:640px;height:720px;background:lime'></div>";

#[tokio::test(flavor = "multi_thread")]
async fn vision_deficiency_changes_the_colours_of_the_image() {
    let site = Site::start(2, [("/", html(HALVES))]).await;
    let rig = Rig::start().await;
    let plain = rig.grab(&site.url("/")).await;
    assert_eq!([plain.colour(300, 300), plain.colour(900, 300)], ["red", "lime"]);
    for full_page in [false, true] {
        for vision in ["deuteranopia", "protanopia", "tritanopia", "achromatopsia", "reduced_contrast"] {
            let vision_of = Some(vision.to_owned());
            let asked = CaptureRequest { vision: vision_of, full_page: Some(full_page), ..request(&site.url("/")) };
            let image = rig.capture(asked).await;
            assert_ne!([image.colour(300, 300), image.colour(900, 300)], ["red", "lime"], "{vision} {full_page}");
            assert!(image.capture.image != plain.capture.image, "{vision}");
        }
    }
    let blurred = CaptureRequest { vision: Some("blurred_vision".into()), ..request(&site.url("/")) };
    assert_eq!(rig.capture(blurred).await.colour(640, 300), "another");
    let none = CaptureRequest { vision: Some("none".into()), ..request(&site.url("/")) };
    assert!(rig.capture(none).await.capture.image == plain.capture.image);
    rig.chromium.shutdown().await;
}

const BOXES: &str = "<!doctype html><body style='margin:0;background:white'>
    <div class=a style='width:100px;height:100px;background:red'></div>
    <div class=b style='width:100px;height:100px;background:blue'></div>
    <div id=host></div>
    <script>document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML =
        '<div class=a style=\\'width:100px;height:100px;background:red\\'></div>'</script>";

#[tokio::test(flavor = "multi_thread")]
async fn hidden_elements_keep_their_space_and_removed_ones_do_not() {
    let page = crate::site::answer(
        "200 OK",
        "Content-Type: text/html\r\nContent-Security-Policy: style-src 'unsafe-inline'; default-src 'unsafe-inline'",
        BOXES,
    );
    let site = Site::start(2, [("/", page)]).await;
    let rig = Rig::start().await;
    let asked = || request(&site.url("/"));
    let colours = |image: &crate::rig::DecodedImage| [50, 150, 250].map(|y| image.colour(50, y));
    assert_eq!(colours(&rig.capture(asked()).await), ["red", "blue", "red"]);
    let hidden = CaptureRequest { hide: Some(vec![".a".to_owned()]), ..asked() };
    assert_eq!(colours(&rig.capture(hidden).await), ["white", "blue", "white"]);
    let removed = CaptureRequest { remove: Some(vec![".a".to_owned(), "#none".to_owned()]), ..asked() };
    assert_eq!(colours(&rig.capture(removed).await), ["blue", "white", "white"]);
    let css = CaptureRequest { css: Some(".b { background: lime !important }".to_owned()), ..asked() };
    assert_eq!(colours(&rig.capture(css).await), ["red", "lime", "red"]);
    for (invalid, message) in [
        (
            CaptureRequest { hide: Some(vec![".a".to_owned(), "p:".to_owned()]), ..asked() },
            "`hide` \"p:\" is not a valid CSS selector.",
        ),
        (
            CaptureRequest { remove: Some(vec![".a } .b {".to_owned()]), ..asked() },
            "`remove` \".a } .b {\" is not a valid CSS selector.",
        ),
    ] {
        let Err(RenderError::Page { failure, .. }) = rig.chromium.render(task(invalid)).await else {
            panic!("{message}")
        };
        assert_eq!(failure.message, message);
    }
    rig.chromium.shutdown().await;
}

/// A page whose script runs this again and again. It has a red area that should not be in the image.
fn page_that_shows_again(again: &str) -> String {
    format!(
        "<!doctype html><style>body {{ margin: 0 }} #a {{ position: absolute; inset: 0; background: red }}</style><p id=a></p>
        <script>const shown = {{ visibility: 'visible', opacity: '1', display: 'block' }};
        const a = document.querySelector('#a');
        const show = () => {{
            for (const [name, value] of Object.entries(shown)) a.style.setProperty(name, value, 'important');
        }};
        {again}</script>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_that_a_script_shows_again_are_in_no_image() {
    let again = ["setInterval(show, 1)", "const next = () => { show(); requestAnimationFrame(next) }; next()"];
    let site = Site::start(
        2,
        [("/timer", again[0]), ("/frame", again[1])].map(|(path, again)| (path, html(page_that_shows_again(again)))),
    )
    .await;
    let rig = Rig::start().await;
    for path in ["/timer", "/frame"] {
        let asked = || {
            let mut asked = with_steps(&site.url(path), &json!([{ "capture": "step" }]));
            assert!(asked.set("viewports", serde_json::from_value(json!([{ "width": 400, "height": 300 }])).unwrap()));
            asked
        };
        assert_eq!(rig.capture(asked()).await.colour(100, 100), "red", "{path}: the page alone");
        for option in ["hide", "remove"] {
            let mut asked = asked();
            assert!(asked.set(option, serde_json::from_value(json!(["#a"])).unwrap()));
            let image = rig.capture(asked).await;
            let others = image.capture.viewports.iter().map(|image| &image.content);
            let others = others.chain(image.capture.step_images.iter().map(|image| &image.content));
            let seen: Vec<_> =
                others.map(|file| image::load_from_memory(file).unwrap().into_rgb8().get_pixel(100, 100).0).collect();
            assert_eq!((image.colour(100, 100), seen), ("white", vec![[255; 3]; 2]), "{path}, {option}");
        }
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_fails_if_a_script_shows_hidden_elements_whatever_is_done() {
    let again = "new MutationObserver(show).observe(a, { attributes: true }); show()";
    let site = Site::start(2, [("/", html(page_that_shows_again(again)))]).await;
    let rig = Rig::start().await;
    let asked = CaptureRequest { hide: Some(vec!["#a".to_owned()]), ..request(&site.url("/")) };
    let failed = rig.chromium.render(task(asked)).await;
    let Err(RenderError::Page { failure, .. }) = failed else { panic!("{failed:?}") };
    assert_eq!(&*failure.message, "The page still shows 1 of the elements that `hide` and `remove` match.");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_waits_for_elements_and_fails_without_them() {
    let late = "<!doctype html><body style='margin:0;background:red'><p class=spinner>wait<script>
        setTimeout(() => { document.body.style.background = 'lime';
            document.body.innerHTML = '<p id=done>done' }, 6000)</script>";
    let site = Site::start(2, [("/", html(late)), ("/never", html("<p class=spinner>wait"))]).await;
    let rig = Rig::start().await;
    let asked = |path: &str| request(&site.url(path));
    let waits = CaptureRequest { wait_for: Some("#done".to_owned()), ..asked("/") };
    assert_eq!(rig.capture(waits).await.colour(600, 400), "lime");
    let waits = CaptureRequest { wait_for_gone: Some(".spinner".to_owned()), ..asked("/") };
    assert_eq!(rig.capture(waits).await.colour(600, 400), "lime");
    for (request, message) in [
        (
            CaptureRequest { wait_for: Some("#done".to_owned()), ..asked("/never") },
            "`wait_for` \"#done\" did not appear",
        ),
        (CaptureRequest { wait_for_gone: Some(".spinner".to_owned()), ..asked("/never") }, "did not go in time"),
        (CaptureRequest { wait_for: Some("p:".to_owned()), ..asked("/never") }, "is not a valid CSS selector"),
    ] {
        let task = RenderTask { budget: Duration::from_secs(6), ..task(request) };
        let Err(RenderError::Page { failure, .. }) = rig.chromium.render(task).await else { panic!("{message}") };
        assert!(failure.message.contains(message), "{}", failure.message);
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_transparent_padded_and_cut_on_request() {
    let page =
        "<!doctype html><body style='margin:0'><div id=box style='position:absolute;left:100px;top:5px;width:40px;
        height:40px;background:red'></div><div style='height:3000px'></div>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let asked = || request(&site.url("/"));
    for format in ["png", "webp"] {
        for full_page in [false, true] {
            let transparent = CaptureRequest {
                transparent: Some(true),
                format: Some(format.to_owned()),
                full_page: Some(full_page),
                ..asked()
            };
            let image = rig.capture(transparent).await;
            let decoded = image::load_from_memory(&image.capture.image).unwrap();
            assert_eq!(decoded.get_pixel(600, 400).0[3], 0, "{format} {full_page}");
            let [red, green, _, alpha] = decoded.get_pixel(120, 20).0;
            assert!(red > 250 && green < 5 && alpha == 255, "{format} {full_page}");
        }
    }
    let padded = CaptureRequest { selector: Some("#box".to_owned()), padding: Some(10), ..asked() };
    let image = rig.capture(padded).await;
    assert_eq!(image.size(), (60, 55), "there are only 5 pixels above the element");
    assert_eq!((image.colour(5, 20), image.colour(30, 25)), ("white", "red"));
    let cut = CaptureRequest { full_page: Some(true), max_height: Some(1000), ..asked() };
    let image = rig.capture(cut).await;
    assert_eq!((image.size(), image.metadata.truncated), ((1280, 1000), true));
    for format in ["jpeg", "webp"] {
        let size = async |quality| {
            let request = CaptureRequest { format: Some(format.to_owned()), quality: Some(quality), ..asked() };
            rig.capture(request).await.capture.image.len()
        };
        assert!(size(1).await < size(100).await, "{format}");
    }
    rig.chromium.shutdown().await;
}
