//! Slices of the image: their pixels, where they are cut, and their headings.

use grabd_domain::capture::CaptureRequest;
use grabd_domain::render::{Capture, RenderError};
use image::{GenericImage as _, RgbaImage};

use crate::rig::{Rig, request};
use crate::site::{Site, html};

/// Sections of 700 pixels, each with a heading and 13 lines. Each line ends with two white rows.
const SECTIONS: &str = "<!doctype html><style>
body { margin: 0 }
body > * { margin: 0; height: 48px; border-bottom: 2px solid white; background: linear-gradient(90deg, red, blue) }
h2 { font: 30px sans-serif; color: white }
</style><body><script>
for (let at = 0; at < 812; at++) {
  const line = document.createElement(at % 14 === 0 ? 'h2' : 'p');
  if (at % 14 === 0) line.textContent = 'Section ' + at / 14;
  document.body.append(line);
}
</script>";

fn pixels(file: &[u8]) -> RgbaImage {
    image::load_from_memory(file).unwrap().into_rgba8()
}

/// The slices put together. They must follow each other.
fn joined(capture: &Capture) -> RgbaImage {
    let whole = pixels(&capture.image);
    let mut joined = RgbaImage::new(whole.width(), whole.height());
    let mut y = 0;
    for slice in &capture.slices {
        let part = pixels(&slice.content);
        assert_eq!((slice.place.y, slice.place.height, part.width()), (y, part.height(), whole.width()));
        joined.copy_from(&part, 0, y).unwrap();
        y += part.height();
    }
    assert_eq!(y, whole.height());
    joined
}

fn headings(capture: &Capture) -> Vec<&str> {
    capture.slices.iter().map(|slice| slice.place.heading.as_deref().unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_of_the_highest_image_are_its_rows_cut_between_lines() {
    let site = Site::start(2, [("/", html(SECTIONS))]).await;
    let rig = Rig::start().await;
    let sliced = |slice_height| CaptureRequest {
        full_page: Some(true),
        width: Some(640),
        slice_height: Some(slice_height),
        ..request(&site.url("/"))
    };
    // The page has 40600 rows, and the image the first 16384.
    let capture = rig.render(sliced(1990)).await.unwrap();
    assert_eq!((capture.metadata.image_height, capture.metadata.truncated), (Some(16_384), true));
    assert!(joined(&capture) == pixels(&capture.image), "the slices are the image");
    let starts: Vec<u32> = capture.slices.iter().map(|slice| slice.place.y).collect();
    assert_eq!(starts, [0, 1950, 3900, 5850, 7800, 9750, 11_700, 13_650, 15_600]);
    let expected: Vec<String> = starts.iter().map(|y| format!("Section {}", y / 700)).collect();
    assert_eq!(headings(&capture), expected);
    assert_eq!(capture.files, []);

    // Every slice could end with a white row, but then there were more than 64 slices.
    let lowest = rig.render(sliced(256)).await.unwrap();
    assert_eq!(lowest.slices.len(), 64);
    assert!(joined(&lowest) == pixels(&lowest.image));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_have_the_format_of_the_image() {
    let clear = "<!doctype html><body style='margin:0;background:rgba(255,0,0,.5)'>";
    let site = Site::start(2, [("/", html(SECTIONS)), ("/clear", html(clear))]).await;
    let rig = Rig::start().await;
    for (format, magic) in [("png", &b"\x89PNG"[..]), ("jpeg", b"\xff\xd8\xff"), ("webp", b"RIFF")] {
        let format_option = Some(format.to_owned());
        let asked = CaptureRequest { slice_height: Some(300), format: format_option, ..request(&site.url("/")) };
        let capture = rig.render(asked).await.unwrap();
        assert_eq!(capture.slices.len(), 3, "{format}");
        assert!(capture.slices.iter().all(|slice| slice.content.starts_with(magic)), "{format}");
        let (joined, whole) = (joined(&capture), pixels(&capture.image));
        let differences: Vec<u64> = joined.iter().zip(whole.iter()).map(|(a, b)| a.abs_diff(*b).into()).collect();
        let (sum, count) = (differences.iter().sum::<u64>(), differences.len() as u64);
        assert!(if format == "jpeg" { sum < 4 * count } else { sum == 0 }, "{format}: {sum} of {count}");
    }
    let clear = CaptureRequest { transparent: Some(true), ..request(&site.url("/clear")) };
    let capture = rig.render(CaptureRequest { slice_height: Some(256), ..clear.clone() }).await.unwrap();
    assert!(joined(&capture) == pixels(&capture.image));
    let alpha = pixels(&capture.slices[0].content).get_pixel(9, 9).0[3];
    assert!((120..136).contains(&alpha), "transparency is kept: {alpha}");
    assert_eq!(rig.render(clear).await.unwrap().slices, []);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headings_are_those_that_a_reader_sees_above_a_slice() {
    let page = r#"<!doctype html><style>
body { margin: 0; height: 3000px; position: relative } body > * { position: absolute; margin: 0; left: 0; width: 900px }
</style><body>
<h1 style="top:100px">First  <b>heading</b></h1>
<h2 style="top:250px;display:none">gone</h2><h2 style="top:260px;visibility:hidden">hidden</h2>
<h2 style="top:270px;opacity:0">clear</h2><h2 style="top:280px"> </h2>
<h2 style="top:290px;width:1px;height:1px;overflow:hidden">for screen readers</h2>
<h2 style="top:295px;left:-9999px">outside</h2>
<div id=host style="top:520px"></div>
<h3 style="top:700px"><img alt="Logo of Example" src="data:,"></h3>
<p style="top:900px">No heading</p>
<div id=part style="top:1000px;height:1200px;background:linear-gradient(90deg,red,blue)">
<h5 style="position:absolute;margin:0;top:400px">Inside</h5></div>
<h6 style="top:2300px;height:30px" id=long></h6>
<script>
document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML = '<h4 style="margin:0">In the shadow</h4>';
document.querySelector('#long').textContent = 'x'.repeat(199) + '\u{1f600}\ud83d' + 'y'.repeat(100);
Element.prototype.getBoundingClientRect = () => ({ top: 0 });
</script>"#;
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let base = CaptureRequest { slice_height: Some(256), ..request(&site.url("/")) };
    let full_page = rig.render(CaptureRequest { full_page: Some(true), ..base.clone() }).await.unwrap();
    let seen = headings(&full_page);
    let rows: Vec<u32> = full_page.slices.iter().map(|slice| slice.place.y).collect();
    assert_eq!(rows[..4], [0, 256, 512, 768], "{rows:?}");
    assert_eq!(seen[..4], ["", "First heading", "First heading", "Logo of Example"]);
    let long = seen.last().unwrap();
    assert!(long.starts_with("xxx") && long.chars().count() <= 200, "{long}");

    // Two image pixels for each CSS pixel: the headings are at twice the row.
    let scaled = rig.render(CaptureRequest { scale: Some(2.0), ..base.clone() }).await.unwrap();
    let at = |row: u32| scaled.slices.iter().find(|slice| slice.place.y == row).unwrap().place.heading.as_deref();
    assert_eq!(
        (at(0), at(256), at(512), at(1280)),
        (None, Some("First heading"), Some("First heading"), Some("In the shadow"))
    );

    // Of an element, also the heading above it.
    let element = rig.render(CaptureRequest { selector: Some("#part".to_owned()), ..base }).await.unwrap();
    let expected = ["Logo of Example", "Logo of Example", "Inside", "Inside", "Inside"];
    assert_eq!(headings(&element), expected);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_that_are_larger_than_an_image_may_be_fail_the_capture() {
    let noise = "<!doctype html><body style='margin:0'><canvas width=1280 height=720></canvas><script>
        const context = document.querySelector('canvas').getContext('2d');
        const image = context.createImageData(1280, 720);
        let seed = 1;
        for (let at = 0; at < image.data.length; at++) {
          seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
          image.data[at] = at % 4 === 3 ? 255 : seed >>> 24;
        }
        context.putImageData(image, 0, 0);
        </script>";
    let site = Site::start(2, [("/", html(noise))]).await;
    // The slices of a WebP are lossless, and so larger than the image.
    let rig = Rig::with(&[2], |options| options.image_max_bytes = 1 << 20).await;
    let webp = CaptureRequest { format: Some("webp".to_owned()), quality: Some(30), ..request(&site.url("/")) };
    let plain = rig.render(webp.clone()).await;
    assert!(plain.is_ok(), "{:?}", plain.err());
    let refused = rig.render(CaptureRequest { slice_height: Some(256), ..webp }).await;
    let Err(RenderError::Page { failure, .. }) = refused else { panic!("slices of {:?}", refused.map(|_| ())) };
    assert!(failure.message.contains("slices of the image have more than 1 MB"), "{failure:?}");
    rig.chromium.shutdown().await;
}
