use std::time::Duration;

use grabd_domain::capture::CaptureRequest;
use grabd_domain::ids::GrabId;
use image::{ImageFormat, RgbImage};

use super::*;

fn spec(url: &str, change: impl FnOnce(&mut CaptureRequest)) -> CaptureSpec {
    let mut request = CaptureRequest { url: Some(url.into()), ..CaptureRequest::default() };
    change(&mut request);
    CaptureSpec::parse(&request).unwrap()
}

fn decode(file: &[u8], format: ImageFormat) -> RgbImage {
    assert_eq!(image::guess_format(file).unwrap(), format);
    image::load_from_memory(file).unwrap().to_rgb8()
}

/// Where pixels are almost black: the word, the host and the corners of the frame.
fn ink(picture: &RgbImage) -> impl Iterator<Item = (u32, u32)> {
    picture.enumerate_pixels().filter(|(.., pixel)| pixel.0.iter().all(|c| *c < 80)).map(|(x, y, _)| (x, y))
}

#[tokio::test]
async fn the_file_has_the_asked_format_and_size() {
    let placeholder = Placeholder::new(0);
    // Unoptimised encoders are slow, so that only one of them draws every size.
    let all = [(320, 240, false), (1280, 720, false), (1920, 1080, false), (320, 1080, true), (1280, 720, true)];
    let some = [(320, 240, false), (320, 240, true)];
    let rows = [
        ("png", ImageFormat::Png, all.as_slice()),
        ("jpeg", ImageFormat::Jpeg, some.as_slice()),
        ("webp", ImageFormat::WebP, some.as_slice()),
    ];
    for (word, format, sizes) in rows {
        for &(width, height, full_page) in sizes {
            let spec = spec("https://example.com/", |request| {
                request.format = Some(word.into());
                request.width = Some(width.into());
                request.height = Some(height.into());
                request.full_page = Some(full_page);
            });
            let picture = decode(&placeholder.draw(&spec).await.unwrap(), format);
            let expected = (width, if full_page { 3240 } else { height });
            assert_eq!(picture.dimensions(), expected, "{word}");
        }
    }
}

#[tokio::test]
async fn the_same_request_gives_the_same_bytes_and_another_gives_others() {
    type Change = fn(&mut CaptureRequest);
    let changes: [(&str, Change); 7] = [
        ("https://example.com/", |_| {}),
        ("https://example.org/", |_| {}),
        ("https://example.com/", |request| request.width = Some(321)),
        ("https://example.com/", |request| request.height = Some(241)),
        ("https://example.com/", |request| request.full_page = Some(true)),
        ("https://example.com/", |request| request.format = Some("jpeg".into())),
        ("https://example.com/", |request| request.format = Some("webp".into())),
    ];
    // One without a cache, so that the bytes are drawn anew each time.
    let (keeping, forgetting) = (Placeholder::new(64 << 20), Placeholder::new(0));
    let mut seen: Vec<Bytes> = Vec::new();
    for (url, change) in changes {
        let spec = spec(url, |request| {
            (request.width, request.height) = (Some(320), Some(240));
            change(request);
        });
        let first = keeping.draw(&spec).await.unwrap();
        assert_eq!(first, keeping.draw(&spec).await.unwrap());
        assert_eq!(first, forgetting.draw(&spec).await.unwrap());
        assert!(!seen.contains(&first), "{url}");
        seen.push(first);
    }
}

#[tokio::test]
async fn what_cannot_be_seen_is_drawn_once() {
    let placeholder = Placeholder::new(1 << 20);
    let first = placeholder.draw(&spec("https://example.com/a", |_| {})).await.unwrap();
    let second = placeholder
        .draw(&spec("http://EXAMPLE.com:8080/b?c#d", |request| {
            request.selector = Some("#main".into());
            request.delay_ms = Some(10);
        }))
        .await
        .unwrap();
    assert_eq!(first.as_ptr(), second.as_ptr());
}

#[tokio::test]
async fn the_word_the_host_and_the_size_are_there() {
    let placeholder = Placeholder::new(0);
    let picture = async |url: &str| decode(&placeholder.draw(&spec(url, |_| {})).await.unwrap(), ImageFormat::Png);
    let short = picture("https://a.io/").await;
    let long = picture("https://a-much-longer-name.example.com/").await;
    // The word is above the middle and does not change with the host; below it the longer host has more ink.
    let amount =
        |picture: &RgbImage, rows: std::ops::Range<u32>| ink(picture).filter(|(_, y)| rows.contains(y)).count();
    assert_eq!(amount(&short, 240..370), amount(&long, 240..370));
    assert!(amount(&short, 240..370) > 8_000, "{}", amount(&short, 240..370));
    assert!(amount(&short, 400..500) > 200, "{}", amount(&short, 400..500));
    assert!(amount(&long, 400..500) > 3 * amount(&short, 400..500));
    // The word stands in the middle, to the pixel or two.
    let columns: Vec<u32> = ink(&short).filter(|(_, y)| (240..370).contains(y)).map(|(x, _)| x).collect();
    let (left, right) = (columns.iter().min().unwrap(), columns.iter().max().unwrap());
    assert!((left + right).abs_diff(1279) <= 6, "{left} {right}");
}

#[tokio::test]
async fn the_longest_host_stays_inside_the_frame() {
    let placeholder = Placeholder::new(0);
    let host = format!("{0}.{0}.{0}.{1}.example", "w".repeat(63), "m".repeat(50));
    for (width, height) in [(320, 240), (1280, 720), (1920, 240), (320, 1080)] {
        let spec = spec(&format!("https://{host}/"), |request| {
            request.width = Some(width);
            request.height = Some(height);
        });
        let picture = decode(&placeholder.draw(&spec).await.unwrap(), ImageFormat::Png);
        let (w, h) = picture.dimensions();
        for (x, y) in ink(&picture) {
            assert!(x >= 8 && x < w - 8 && y >= 8 && y < h - 8, "{width}x{height}: ink at {x},{y}");
        }
    }
}

#[tokio::test]
async fn every_host_a_url_can_carry_can_be_drawn() {
    let placeholder = Placeholder::new(0);
    for url in [
        "https://8.8.8.8/",
        "https://[2606:4700:4700::1111]/",
        "https://bücher.example/",
        "https://日本語.example/",
        "https://a_b.example/",
        "https://a&b'c\"d.example/",
        "https://blocked.test/",
    ] {
        placeholder.draw(&spec(url, |_| {})).await.unwrap();
    }
}

#[tokio::test]
async fn as_a_renderer_it_tells_of_a_page_that_answered_at_once() {
    let placeholder = Placeholder::new(1 << 20);
    let spec = spec("https://example.com/a", |request| request.full_page = Some(true));
    let id = GrabId(uuid::Uuid::nil());
    let task = RenderTask { id, spec: spec.clone(), budget: Duration::from_secs(1), alone: false };
    let Capture { image, facts, .. } = placeholder.render(task).await.unwrap();
    assert_eq!(image, placeholder.draw(&spec).await.unwrap());
    let expected = Facts {
        final_url: Some("https://example.com/a".into()),
        http_status: Some(200),
        settled_by: Some(SettledBy::Quiet),
        blocked_requests: 0,
        image_width: Some(1280),
        image_height: Some(3240),
        truncated: false,
    };
    assert_eq!(facts, expected);
}
