//! Images of the same page in further viewports.

use std::collections::BTreeMap;

use grabd_domain::capture::{CaptureRequest, OptionValue};
use grabd_domain::render::{Capture, RenderError};
use image::RgbaImage;

use crate::rig::{Rig, request};
use crate::site::{Site, html};

/// Green in wide windows, red in narrow ones, with a bar at the bottom of the window, and 1500 pixels high.
const PAGE: &str = "<!doctype html><meta name=viewport content='width=device-width'><style>
html { background: rgb(0, 128, 0) } body { margin: 0; height: 1500px }
@media (max-width: 500px) { html { background: rgb(200, 0, 0) } }
div { position: fixed; bottom: 0; left: 0; width: 100%; height: 40px; background: rgb(0, 0, 255) }
p { margin: 0; width: 100%; height: 30px }
</style><body><p></p><div></div><script>
const loads = Number(sessionStorage.loads ?? 0) + 1;
sessionStorage.loads = loads;
const show = () => document.querySelector('p').style.background = `rgb(${loads}, ${innerWidth % 256}, ${innerHeight % 256})`;
addEventListener('resize', show);
show();
</script>";

const GREEN: [u8; 3] = [0, 128, 0];
const RED: [u8; 3] = [200, 0, 0];
const BLUE: [u8; 3] = [0, 0, 255];

fn pixels(file: &[u8]) -> RgbaImage {
    image::load_from_memory(file).unwrap().into_rgba8()
}

fn colour(image: &RgbaImage, x: u32, y: u32) -> [u8; 3] {
    let [red, green, blue, _] = image.get_pixel(x, y).0;
    [red, green, blue]
}

fn viewports(sizes: &[(i64, i64)]) -> Option<Vec<BTreeMap<String, OptionValue>>> {
    let size = |(width, height): &(i64, i64)| {
        [("width", width), ("height", height)].map(|(name, side)| (name.to_owned(), OptionValue::Integer(*side))).into()
    };
    Some(sizes.iter().map(size).collect())
}

fn sizes(capture: &Capture) -> Vec<(u32, u32)> {
    capture.viewports.iter().map(|image| (image.size.width, image.size.height)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn page_is_resized_and_not_loaded_again() {
    let site = Site::start(2, [("/", html(PAGE))]).await;
    let rig = Rig::start().await;
    let asked = CaptureRequest {
        viewports: viewports(&[(390, 844), (1024, 768), (390, 500)]),
        slice_height: Some(400),
        also: Some(vec!["text".to_owned()]),
        ..request(&site.url("/"))
    };
    let plain = rig.render(CaptureRequest { viewports: None, ..asked.clone() }).await.unwrap();
    let capture = rig.render(asked.clone()).await.unwrap();
    assert!(pixels(&capture.image) == pixels(&plain.image), "the image is that without further viewports");
    assert_eq!((capture.slices.len(), capture.files.len(), plain.viewports.len()), (2, 1, 0));
    assert_eq!(sizes(&capture), [(390, 844), (1024, 768), (390, 500)]);
    for (image, (background, width, height)) in
        capture.viewports.iter().zip([(RED, 390, 844), (GREEN, 1024, 768), (RED, 390, 500)])
    {
        let shown = pixels(&image.content);
        assert_eq!(shown.dimensions(), (width, height));
        // Its script saw one load, and the new size.
        assert_eq!(colour(&shown, 10, 10), [1, (width % 256) as u8, (height % 256) as u8]);
        assert_eq!(colour(&shown, 10, 100), background);
        assert_eq!((colour(&shown, 10, height - 10), colour(&shown, 10, height - 50)), (BLUE, background));
    }

    // Of the whole page, whose layout for one image is undone before the next.
    let full = CaptureRequest { full_page: Some(true), format: Some("jpeg".into()), ..asked };
    let full = CaptureRequest { slice_height: None, also: None, ..full };
    let capture = rig.render(full).await.unwrap();
    assert_eq!(sizes(&capture), [(390, 1500), (1024, 1500), (390, 1500)]);
    for image in &capture.viewports {
        assert!(image.content.starts_with(b"\xff\xd8\xff"));
        let shown = pixels(&image.content);
        let near = |y: u32, expected: [u8; 3]| {
            let seen = colour(&shown, 20, y);
            assert!(seen.iter().zip(expected).all(|(a, b)| a.abs_diff(b) < 12), "{y}: {seen:?} is not {expected:?}");
        };
        let background = if image.size.viewport_width == 390 { RED } else { GREEN };
        near(1490, BLUE);
        (1..29).for_each(|at| near(at * 50, background));
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_that_leaves_when_it_is_resized_fails() {
    let leaving = "<!doctype html><p>Wide<script>addEventListener('resize', () => { location = '/phone' })</script>";
    let site = Site::start(2, [("/", html(leaving)), ("/phone", html("<p>Phone"))]).await;
    let rig = Rig::start().await;
    let asked = CaptureRequest { viewports: viewports(&[(390, 844)]), ..request(&site.url("/")) };
    match rig.render(asked).await {
        Err(RenderError::Page { failure, .. }) => {
            assert_eq!(failure.message, "The page left for another one when it was shown in 390x844 pixels.");
        }
        other => panic!("{other:?}"),
    }
    rig.chromium.shutdown().await;
}
