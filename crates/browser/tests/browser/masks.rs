//! Elements that are masked or outlined in the image.

use std::collections::BTreeMap;
use std::time::Duration;

use grabd_domain::capture::{CaptureRequest, OptionValue, Rectangle};
use grabd_domain::grabs::FailureReason;
use grabd_domain::render::{RenderError, RenderTask};

use crate::rig::{DecodedImage, Rig, request, task};
use crate::site::{Site, html};

/// What is masked is red, and nothing else is. Its descendants are outside of its box, in the top layer, and visible by
/// themselves.
const PAGE: &str = "<!doctype html><style>
body { margin: 0; background: white; height: 2000px }
.secret, .secret * { background: red; color: red }
#block { position: absolute; left: 100px; top: 100px; width: 100px; height: 100px }
#out { position: absolute; left: 300px; top: 0; width: 60px; height: 60px; visibility: visible; opacity: 1 }
#fixed { position: fixed; left: 600px; top: 300px; width: 50px; height: 50px }
#turned { position: absolute; left: 100px; top: 300px; width: 100px; height: 50px; rotate: 45deg; transition: opacity 9s }
#stubborn { position: absolute; left: 100px; top: 450px; width: 50px; height: 50px }
#contents { display: contents }
#contents::before { content: 'x'; visibility: visible; background: red }
#pseudo { position: absolute; left: 300px; top: 300px; width: 20px; height: 20px }
#pseudo::after { content: 'x'; position: absolute; left: 40px; width: 20px; height: 20px; background: red }
#low { position: absolute; left: 100px; top: 1500px; width: 100px; height: 100px }
iframe { position: absolute; left: 800px; top: 100px; width: 200px; height: 100px; border: 0 }
#host { position: absolute; left: 800px; top: 300px }
canvas { position: absolute; left: 800px; top: 450px; width: 50px; height: 50px }
dialog { inset: auto; left: 1000px; top: 500px; width: 50px; height: 50px; margin: 0; border: 0; padding: 0; visibility: visible }
dialog::backdrop { display: none }
</style><body>
<div id=block class=secret>text<span id=out>out</span><p id=fixed>fixed</p><dialog>open</dialog></div>
<div id=turned class=secret></div>
<div id=stubborn class=secret style='opacity: 1 !important; visibility: visible !important'></div>
<div id=contents class=secret>direct<p style='margin:0;width:50px;height:20px'>in it</p></div>
<div id=pseudo class=secret></div>
<div id=low class=secret></div>
<canvas class=secret></canvas>
<div id=host></div>
<iframe srcdoc=\"<body style='margin:0'><div class=secret style='width:80px;height:80px;background:red'>frame</div>\"></iframe>
<script>
document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML =
    '<div class=secret style=\"width:80px;height:80px;background:red\">shadow</div>';
document.querySelector('dialog').showModal();
const canvas = document.querySelector('canvas').getContext('2d');
canvas.fillStyle = 'red';
canvas.fillRect(0, 0, 999, 999);
</script>";

fn masked(url: &str, selectors: &[&str]) -> CaptureRequest {
    CaptureRequest { mask: Some(selectors.iter().map(|text| (*text).to_owned()).collect()), ..request(url) }
}

/// Whether any pixel is rather red than of another colour.
fn shows_red(image: &[u8]) -> bool {
    let pixels = image::load_from_memory(image).unwrap().into_rgb8();
    pixels.pixels().any(|pixel| i32::from(pixel.0[0]) - i32::from(pixel.0[1].max(pixel.0[2])) > 40)
}

fn is_covered(image: &DecodedImage, places: &[(u32, u32)]) -> bool {
    !shows_red(&image.capture.image) && places.iter().all(|(x, y)| image.colour(*x, *y) == "gray")
}

#[tokio::test(flavor = "multi_thread")]
async fn masked_elements_are_in_no_kind_of_image() {
    let site = Site::start(2, [("/", html(PAGE))]).await;
    let rig = Rig::start().await;
    let url = site.url("/");
    assert!(shows_red(&rig.grab(&url).await.capture.image), "the page without the mask");
    let places = [(150, 150), (150, 325), (120, 470), (310, 310), (840, 140), (840, 340), (820, 470)];
    let asked = || masked(&url, &[".secret"]);
    let window = rig.capture(asked()).await;
    assert!(is_covered(&window, &places), "the window");
    assert_eq!(window.colour(500, 600), "white");
    let full = rig.capture(CaptureRequest { full_page: Some(true), ..asked() }).await;
    assert!(is_covered(&full, &places) && full.colour(150, 1550) == "gray", "the full page");
    let part = Rectangle { x: 100, y: 1500, width: 400, height: 200 };
    let part = rig.capture(CaptureRequest { clip: Some(part), ..asked() }).await;
    assert!(is_covered(&part, &[(50, 50)]) && part.colour(300, 50) == "white", "a rectangle");
    let element = rig.capture(CaptureRequest { selector: Some("body".into()), ..asked() }).await;
    assert!(is_covered(&element, &[(150, 150)]), "an element");
    let jpeg = CaptureRequest { format: Some("jpeg".into()), scale: Some(2.0), freeze: Some(true), ..asked() };
    assert!(is_covered(&rig.capture(jpeg).await, &[(300, 300)]), "other formats");
    let still = CaptureRequest { javascript: Some(false), ..asked() };
    assert!(is_covered(&rig.capture(still).await, &[(150, 150)]), "without scripts of the page");

    let size: BTreeMap<_, _> =
        [("width", 700), ("height", 900)].map(|(name, side)| (name.to_owned(), OptionValue::Integer(side))).into();
    // The element itself: it is found again in each window.
    let own = CaptureRequest { selector: Some("#block".into()), viewports: Some(vec![size.clone(); 2]), ..asked() };
    let own = rig.capture(own).await;
    assert!(is_covered(&own, &[(50, 50)]) && own.size() == (100, 100), "the masked element");
    assert_eq!(own.capture.viewports.len(), 2);
    assert!(!own.capture.viewports.iter().any(|viewport| shows_red(&viewport.content)));
    let also = CaptureRequest {
        viewports: Some(vec![size.clone(), size]),
        slice_height: Some(400),
        also: Some(vec!["report".into()]),
        ..asked()
    };
    let capture = rig.render(also).await.unwrap();
    let others = capture.slices.iter().map(|slice| &slice.content);
    let others: Vec<_> = others.chain(capture.viewports.iter().map(|viewport| &viewport.content)).collect();
    assert_eq!(others.len(), 4);
    for other in others {
        assert!(!shows_red(other));
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn background_of_a_masked_body_is_not_behind_the_page() {
    let page = html("<!doctype html><body style='margin:0;background:red'><p>secret");
    let site = Site::start(2, [("/", page)]).await;
    let rig = Rig::start().await;
    for selector in ["body", "html"] {
        let image = rig.capture(masked(&site.url("/"), &[selector])).await;
        assert!(!shows_red(&image.capture.image), "{selector}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_that_are_added_later_are_masked() {
    // The second is added as soon as the page notices that it is masked.
    let late = "<!doctype html><style>body { margin: 0 } .secret { height: 40px; background: red }</style><body>
        <div class=secret></div><script>
        const add = () => {
            const element = document.createElement('div');
            element.className = 'secret';
            element.style.setProperty('opacity', '1', 'important');
            document.body.append(element);
        };
        setTimeout(add, 300);
        new MutationObserver((_, self) => {
            self.disconnect();
            add();
        }).observe(document.documentElement, { childList: true });
        </script>";
    let site = Site::start(2, [("/", html(late))]).await;
    let rig = Rig::start().await;
    for full_page in [false, true] {
        let asked = CaptureRequest { full_page: Some(full_page), ..masked(&site.url("/"), &[".secret"]) };
        assert!(is_covered(&rig.capture(asked).await, &[(20, 20)]), "{full_page}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_masked_in_each_of_its_lines_and_headings_of_slices_are_left_out() {
    let page = "<!doctype html><body style='margin:0;font:20px/40px monospace;width:400px'>
        <h1 style='margin:0;font:inherit;width:300px'>Account <b id=number style='color:red'>12345678901234 5678</b></h1>
        <div style='height:1500px'></div>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let asked =
        CaptureRequest { full_page: Some(true), slice_height: Some(800), ..masked(&site.url("/"), &["#number"]) };
    let image = rig.capture(asked).await;
    assert!(is_covered(&image, &[(150, 20), (20, 60)]) && image.colour(350, 60) == "white");
    let headings: Vec<_> = image.capture.slices.iter().map(|slice| format!("{:?}", slice.place)).collect();
    assert!(!headings.is_empty() && !headings.concat().contains("1234"), "{headings:?}");
    rig.chromium.shutdown().await;
}

/// Freezing replaces animated images by copies, which are not images.
#[tokio::test(flavor = "multi_thread")]
async fn frozen_copies_of_masked_elements_are_masked() {
    let page = "<!doctype html><style>body { margin: 0 } img { display: block; width: 100px; height: 100px }</style>
        <img src='data:image/gif;base64,GIF'><img src='data:image/svg+xml,<svg xmlns=\"http://www.w3.org/2000/svg\"/>'>"
        .replace("GIF", "R0lGODlhAQABAIAAAP8AAAAAACwAAAAAAQABAAACAkQBADs=");
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let url = site.url("/");
    let frozen = |asked: CaptureRequest| CaptureRequest { freeze: Some(true), ..asked };
    assert_eq!(rig.capture(frozen(request(&url))).await.colour(50, 50), "red");
    for selector in ["img", "img:first-of-type"] {
        let image = rig.capture(frozen(masked(&url, &[selector]))).await;
        assert!(is_covered(&image, &[(50, 50)]), "{selector}");
    }
    // A selector that would match what is drawn for the mask, too.
    let all = rig.capture(masked(&url, &["img, div"])).await;
    assert!(is_covered(&all, &[(50, 50)]));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mask_that_matches_nothing_fails() {
    let fights = "<!doctype html><p id=a class=a>secret<script>
        setInterval(() => document.querySelector('p').removeAttribute('class'))</script>";
    let site = Site::start(2, [("/", html("<!doctype html><p class=a>text")), ("/fights", html(fights))]).await;
    let rig = Rig::start().await;
    for (path, selectors, message) in [
        ("/", &[".a", ".none"][..], "`mask` \".none\" matches nothing on the page."),
        ("/", &["p:"], "`mask` \"p:\" is not a valid CSS selector."),
        ("/fights", &[".a"], "`mask` \".a\" matches nothing on the page."),
    ] {
        let task = RenderTask { budget: Duration::from_secs(10), ..task(masked(&site.url(path), selectors)) };
        let failed = grabd_domain::render::Renderer::render(&rig.chromium, task).await;
        let Err(RenderError::Page { failure, .. }) = failed else { panic!("{selectors:?}") };
        assert_eq!((failure.reason, &*failure.message), (FailureReason::RenderFailed, message));
    }
    rig.chromium.shutdown().await;
}

fn highlighted(url: &str, json: &str) -> CaptureRequest {
    let mut request = request(url);
    assert!(request.set("highlight", serde_json::from_str(json).unwrap()), "{json}");
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn highlighted_elements_are_outlined_in_every_kind_of_image() {
    let page = "<!doctype html><style>body { margin: 0; height: 2000px }
        div { position: absolute; left: 100px; width: 100px; height: 100px } #host { left: 0; width: 0; height: 0 }
        </style><body><div class=a style='top:100px'></div><div class=a style='top:300px'></div>
        <div class=low style='top:1500px'></div><div id=host style='top:0'></div>
        <script>document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML =
            '<div class=a style=\"position:absolute;left:400px;top:100px;width:50px;height:50px\">x</div>'</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let url = site.url("/");
    let asked = || highlighted(&url, r#"[{"selector": ".a", "label": "Box", "color": "blue"}]"#);
    assert_eq!(rig.grab(&url).await.colour(98, 150), "white", "the page without the outline");
    let window = rig.capture(asked()).await;
    for (x, y) in [(98, 150), (202, 150), (150, 98), (150, 202), (98, 350), (398, 120)] {
        assert_eq!(window.colour(x, y), "blue", "{x},{y}");
    }
    assert_eq!((window.colour(150, 150), window.colour(105, 79)), ("white", "blue"), "the label is above the element");
    let full = rig.capture(CaptureRequest { full_page: Some(true), ..asked() }).await;
    assert_eq!((full.colour(98, 150), full.size()), ("blue", (1280, 2000)));
    // The outline of an element that is the whole image is in it.
    let element = rig.capture(CaptureRequest { selector: Some("div.a".into()), ..asked() }).await;
    assert_eq!((element.size(), element.colour(1, 50), element.colour(50, 50)), ((100, 100), "blue", "white"));
    let both = CaptureRequest { mask: Some(vec![".a".into()]), ..asked() };
    let both = rig.capture(both).await;
    assert_eq!((both.colour(98, 150), both.colour(150, 150)), ("blue", "gray"));

    let low = |asked: CaptureRequest| CaptureRequest { full_page: Some(true), ..asked };
    let asked = highlighted(&url, r#"[{"selector": ".low"}]"#);
    assert_eq!(rig.capture(low(asked.clone())).await.colour(98, 1550), "red");
    for (request, message) in [
        (asked, "`highlight` \".low\" matches nothing in the image."),
        (highlighted(&url, r#"[{"selector": ".none"}]"#), "`highlight` \".none\" matches nothing on the page."),
        (highlighted(&url, r#"[{"selector": "p:"}]"#), "`highlight` \"p:\" is not a valid CSS selector."),
    ] {
        let (failure, _) = rig.fails(request).await;
        assert_eq!((failure.reason, &*failure.message), (FailureReason::RenderFailed, message));
    }
    rig.chromium.shutdown().await;
}
