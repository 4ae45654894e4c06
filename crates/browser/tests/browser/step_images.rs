//! Images that steps take.

use std::time::Duration;

use grabd_domain::capture::CaptureRequest;
use grabd_domain::grabs::FailureReason::RenderBlocked;
use grabd_domain::render::{Capture, CapturedStepImage};
use image::RgbImage;
use serde_json::json;

use crate::rig::{Rig, request, with_steps};
use crate::site::{Site, answer, html};

/// Red at first, lime after a click, and 2000 pixels high, with a blue box near the top.
const PAGE: &str = "<!doctype html><body style='margin:0;height:2000px;background:rgb(255, 0, 0)'>
    <button style='position:fixed;top:0;left:0' onclick=\"document.body.style.background = 'rgb(0, 255, 0)'\">Open</button>
    <p id=secret style='position:absolute;top:100px;left:0;width:200px;height:100px;margin:0;background:rgb(0, 0, 255)'></p>";

const RED: [u8; 3] = [255, 0, 0];
const LIME: [u8; 3] = [0, 255, 0];
const BLUE: [u8; 3] = [0, 0, 255];

async fn rig() -> Rig {
    Rig::with(&[2], |options| options.settle_budget = Duration::from_secs(2)).await
}

fn decoded(image: &CapturedStepImage) -> RgbImage {
    let pixels = image::load_from_memory(&image.content).unwrap().into_rgb8();
    assert_eq!(pixels.dimensions(), (image.image.width, image.image.height));
    pixels
}

/// The names of the images with their heights, and their colours at a point.
fn shown(capture: &Capture, (x, y): (u32, u32)) -> Vec<(&str, u32, [u8; 3])> {
    let image = |taken: &CapturedStepImage| decoded(taken).get_pixel(x, y).0;
    capture.step_images.iter().map(|taken| (&*taken.image.name, taken.image.height, image(taken))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_image_shows_the_page_at_its_step() {
    let site = Site::start(2, [("/", html(PAGE))]).await;
    let rig = rig().await;
    let steps = json!([
        { "capture": "first" },
        { "click": "text=Open" },
        { "capture": "opened" },
        { "script": "document.body.style.background = 'rgb(0, 0, 255)'" },
    ]);
    let image = rig.capture(with_steps(&site.url("/"), &steps)).await;
    assert_eq!(image.colour(900, 500), "blue");
    assert_eq!(shown(&image.capture, (900, 500)), [("first", 720, RED), ("opened", 720, LIME)]);
    let plain = rig.capture(request(&site.url("/"))).await;
    assert_eq!(plain.capture.step_images, []);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_the_whole_page_leave_it_as_it_was() {
    let site = Site::start(2, [("/", html(PAGE))]).await;
    let rig = rig().await;
    let steps = json!([
        { "scroll_to": "bottom" },
        { "capture": "first" },
        { "script": "document.title = `${innerHeight} ${Math.round(scrollY)}`" },
        { "click": "text=Open" },
        { "capture": "opened" },
    ]);
    let asked = CaptureRequest { full_page: Some(true), ..with_steps(&site.url("/"), &steps) };
    let image = rig.capture(asked).await;
    assert_eq!(image.metadata.page.title.as_deref(), Some("720 1280"));
    assert_eq!((image.size(), image.colour(900, 1900)), ((1280, 2000), "lime"));
    assert_eq!(shown(&image.capture, (900, 1900)), [("first", 2000, RED), ("opened", 2000, LIME)]);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn masks_and_hidden_elements_are_not_in_images_of_steps() {
    let site = Site::start(2, [("/", html(PAGE))]).await;
    let rig = rig().await;
    let steps =
        with_steps(&site.url("/"), &json!([{ "capture": "one" }, { "click": "text=Open" }, { "capture": "two" }]));
    let blue = (100, 150);
    let plain = rig.render(steps.clone()).await.unwrap();
    assert_eq!(shown(&plain, blue), [("one", 720, BLUE), ("two", 720, BLUE)]);
    let masked = rig.render(CaptureRequest { mask: Some(vec!["#secret".into()]), ..steps.clone() }).await.unwrap();
    assert!(
        shown(&masked, blue).iter().all(|(_, _, colour)| ![BLUE, RED, LIME].contains(colour)),
        "{:?}",
        shown(&masked, blue)
    );
    let hidden = rig.render(CaptureRequest { hide: Some(vec!["#secret".into()]), ..steps }).await.unwrap();
    assert_eq!(shown(&hidden, blue), [("one", 720, RED), ("two", 720, LIME)]);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn image_of_a_step_is_of_the_page_that_the_steps_before_led_to() {
    let first = "<!doctype html><body style='margin:0;background:rgb(255, 0, 0)'><a href=/next>Next</a>";
    let next = "<!doctype html><body style='margin:0;background:rgb(0, 255, 0)'>Next";
    let site = Site::start(2, [("/", html(first)), ("/next", html(next).after(300))]).await;
    let rig = rig().await;
    let steps = json!([{ "capture": "before" }, { "click": "text=Next" }, { "capture": "after" }]);
    let image = rig.capture(with_steps(&site.url("/"), &steps)).await;
    assert_eq!(shown(&image.capture, (900, 500)), [("before", 720, RED), ("after", 720, LIME)]);
    assert_eq!(site.hits("/next"), 1);

    let missing = json!([{ "capture": "before" }, { "click": "#none" }]);
    let (failure, _) = rig.fails(with_steps(&site.url("/"), &missing)).await;
    assert!(failure.message.starts_with("Step 2 (click): nothing matches"), "{failure:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_that_must_not_be_captured_is_in_no_image_of_a_step() {
    let refused = answer("403 Forbidden", "Content-Type: text/html", "<!doctype html><a href=/>Back</a>");
    let site = Site::start(2, [("/", html("<!doctype html><a href=/refused>Next</a>")), ("/refused", refused)]).await;
    let rig = rig().await;
    let steps = json!([{ "click": "text=Next" }, { "capture": "refused" }, { "click": "text=Back" }]);
    let (failure, _) = rig.fails(with_steps(&site.url("/"), &steps)).await;
    assert_eq!(failure.reason, RenderBlocked);
    assert!(failure.message.contains("status 403"), "{failure:?}");
    rig.chromium.shutdown().await;
}
