use std::time::Duration;

use grabd_domain::capture::{CaptureRequest, OptionValue, SliceNumber, StepImageNumber, ViewportNumber};
use grabd_domain::ids::GrabId;
use grabd_domain::render::{RequestSigner, SlotHold, StageReporter};
use image::{ImageFormat, RgbImage};

use super::*;

fn memory() -> MemoryBudget {
    MemoryBudget::new(256 << 20)
}

fn spec(url: &str, change: impl FnOnce(&mut CaptureRequest)) -> CaptureSpec {
    let mut request = CaptureRequest { url: Some(url.into()), ..CaptureRequest::default() };
    change(&mut request);
    CaptureSpec::parse(&request).unwrap()
}

fn decode(file: &[u8], format: ImageFormat) -> RgbImage {
    assert_eq!(image::guess_format(file).unwrap(), format);
    image::load_from_memory(file).unwrap().to_rgb8()
}

/// Positions of dark pixels: the word, the host and the corners of the frame.
fn dark_pixels(image: &RgbImage) -> impl Iterator<Item = (u32, u32)> {
    image.enumerate_pixels().filter(|(.., pixel)| pixel.0.iter().all(|c| *c < 80)).map(|(x, y, _)| (x, y))
}

#[tokio::test]
async fn placeholder_has_the_requested_format_and_size() {
    let placeholder = Placeholder::new(0, memory());
    // Encoders are slow in debug builds, so only PNG is tested in every size.
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
            let image = decode(&placeholder.draw(&spec).await.unwrap(), format);
            let expected = (width, if full_page { 3240 } else { height });
            assert_eq!(image.dimensions(), expected, "{word}");
        }
    }
}

#[tokio::test]
async fn images_for_visitors_do_not_delay_creates() {
    let placeholder = Placeholder::new(0, memory());
    let visitors = placeholder.for_visitors();
    let _held = Arc::clone(&visitors.permits).acquire_owned().await.unwrap();
    let spec = spec("https://example.com/", |_| ());
    let shown = timeout(Duration::from_millis(100), visitors.draw(&spec)).await;
    assert!(shown.is_err(), "visitors wait for each other");
    assert!(placeholder.capture(&spec, Vec::new()).await.is_ok());
}

#[tokio::test]
async fn placeholder_shows_clip_and_fit() {
    type Change = fn(&mut CaptureRequest);
    let clip = |width, height| Some(grabd_domain::capture::Rectangle { x: 0, y: 0, width, height });
    let placeholder = Placeholder::new(0, memory());
    let rows: [(Change, (u32, u32)); 4] = [
        (|request| request.fit_width = Some(320), (320, 180)),
        (|request| (request.fit_width, request.fit_height) = (Some(1000), Some(16)), (28, 16)),
        (|request| request.fit_width = Some(8000), (1280, 720)),
        (|request| (request.scale, request.fit_height) = (Some(2.0), Some(720)), (1280, 720)),
    ];
    for (change, size) in rows {
        let spec = spec("https://example.com/", change);
        assert_eq!(decode(&placeholder.draw(&spec).await.unwrap(), ImageFormat::Png).dimensions(), size);
    }
    for (asked, size) in [(clip(1, 1), (1, 1)), (clip(300, 200), (300, 200)), (clip(16_384, 16_384), (1280, 3240))] {
        let spec = spec("https://example.com/", |request| request.clip = asked);
        assert_eq!(decode(&placeholder.draw(&spec).await.unwrap(), ImageFormat::Png).dimensions(), size);
    }
}

#[tokio::test]
async fn same_request_gives_same_bytes_and_a_different_one_different_bytes() {
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
    // The second has no cache, so it draws every time.
    let (cached, uncached) = (Placeholder::new(64 << 20, memory()), Placeholder::new(0, memory()));
    let mut seen: Vec<Bytes> = Vec::new();
    for (url, change) in changes {
        let spec = spec(url, |request| {
            (request.width, request.height) = (Some(320), Some(240));
            change(request);
        });
        let first = cached.draw(&spec).await.unwrap();
        assert_eq!(first, cached.draw(&spec).await.unwrap());
        assert_eq!(first, uncached.draw(&spec).await.unwrap());
        assert!(!seen.contains(&first), "{url}");
        seen.push(first);
    }
}

#[tokio::test]
async fn requests_that_differ_only_in_invisible_fields_share_a_cache_entry() {
    let placeholder = Placeholder::new(1 << 20, memory());
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
async fn word_and_host_are_drawn_and_centred() {
    let placeholder = Placeholder::new(0, memory());
    let draw = async |url: &str| decode(&placeholder.draw(&spec(url, |_| {})).await.unwrap(), ImageFormat::Png);
    let short = draw("https://a.io/").await;
    let long = draw("https://a-much-longer-name.example.com/").await;
    // The word is above the middle and independent of the host; below it the longer host has more dark pixels.
    let amount =
        |image: &RgbImage, rows: std::ops::Range<u32>| dark_pixels(image).filter(|(_, y)| rows.contains(y)).count();
    assert_eq!(amount(&short, 240..370), amount(&long, 240..370));
    assert!(amount(&short, 240..370) > 8_000, "{}", amount(&short, 240..370));
    assert!(amount(&short, 400..500) > 200, "{}", amount(&short, 400..500));
    assert!(amount(&long, 400..500) > 3 * amount(&short, 400..500));
    // The word is centred, to a few pixels.
    let columns: Vec<u32> = dark_pixels(&short).filter(|(_, y)| (240..370).contains(y)).map(|(x, _)| x).collect();
    let (left, right) = (columns.iter().min().unwrap(), columns.iter().max().unwrap());
    assert!((left + right).abs_diff(1279) <= 6, "{left} {right}");
}

#[tokio::test]
async fn longest_host_stays_inside_the_frame() {
    let placeholder = Placeholder::new(0, memory());
    let host = format!("{0}.{0}.{0}.{1}.example", "w".repeat(63), "m".repeat(50));
    for (width, height) in [(320, 240), (1280, 720), (1920, 240), (320, 1080)] {
        let spec = spec(&format!("https://{host}/"), |request| {
            request.width = Some(width);
            request.height = Some(height);
        });
        let image = decode(&placeholder.draw(&spec).await.unwrap(), ImageFormat::Png);
        let (w, h) = image.dimensions();
        for (x, y) in dark_pixels(&image) {
            assert!(x >= 8 && x < w - 8 && y >= 8 && y < h - 8, "{width}x{height}: dark pixel at {x},{y}");
        }
    }
}

#[tokio::test]
async fn every_kind_of_host_can_be_drawn() {
    let placeholder = Placeholder::new(0, memory());
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
async fn render_reports_a_page_that_responded_at_once() {
    let placeholder = Placeholder::new(1 << 20, memory());
    let spec = spec("https://example.com/a", |request| request.full_page = Some(true));
    let id = GrabId(uuid::Uuid::nil());
    let task = RenderTask {
        id,
        spec: spec.clone(),
        budget: Duration::from_secs(1),
        alone: false,
        stages: StageReporter::default(),
        slot: SlotHold::default(),
        domains: Arc::default(),
        signer: RequestSigner::default(),
        proxy: None,
    };
    let Capture { image, metadata, .. } = placeholder.render(task).await.unwrap();
    assert_eq!(image, placeholder.draw(&spec).await.unwrap());
    let expected = RenderMetadata {
        final_url: Some("https://example.com/a".into()),
        http_status: Some(200),
        settled_by: Some(SettledBy::Quiet),
        image_width: Some(1280),
        image_height: Some(3240),
        image_sha256: Some(ImageDigest::of(&image)),
        ..RenderMetadata::default()
    };
    assert_eq!(metadata, expected);
}

#[tokio::test]
async fn slices_are_made_only_if_they_are_asked_for_and_are_always_the_same() {
    let placeholder = Placeholder::new(1 << 20, memory());
    let slice_height = |slice_height| spec("https://example.com/a", move |request| request.slice_height = slice_height);
    let plain = placeholder.capture(&slice_height(None), Vec::new()).await.unwrap();
    assert_eq!(plain.slices, []);
    let sliced = placeholder.capture(&slice_height(Some(256)), Vec::new()).await.unwrap();
    assert_eq!((plain.image, sliced.slices.len()), (sliced.image, 3));
    for (slice, number) in sliced.slices.iter().zip(SliceNumber::all()) {
        let name = AttachmentName::Slice(number);
        assert_eq!(placeholder.file(&slice_height(Some(256)), name).await.unwrap(), Some(slice.content.clone()));
        assert_eq!(placeholder.file(&slice_height(None), name).await.unwrap(), None);
    }
    let fourth = AttachmentName::Slice(SliceNumber::new(4).unwrap());
    assert_eq!(placeholder.file(&slice_height(Some(256)), fourth).await.unwrap(), None);
}

#[tokio::test]
async fn images_in_viewports_have_their_size_and_are_always_the_same() {
    let placeholder = Placeholder::new(1 << 20, memory());
    let size = |width, height| {
        [("width", width), ("height", height)].map(|(name, side)| (name.to_owned(), OptionValue::Integer(side)))
    };
    let spec = spec("https://example.com/a", |request| {
        request.viewports = Some(vec![size(390, 844).into(), size(768, 1024).into()]);
        request.scale = Some(2.0);
    });
    let captured = placeholder.capture(&spec, Vec::new()).await.unwrap();
    let sizes: Vec<_> = captured.viewports.iter().map(|image| (image.size.width, image.size.height)).collect();
    assert_eq!(sizes, [(780, 1688), (1536, 2048)]);
    for (number, image) in ViewportNumber::all().zip(&captured.viewports) {
        let again = placeholder.file(&spec, AttachmentName::Viewport(number)).await.unwrap();
        assert_eq!(again.as_ref(), Some(&image.content));
        let shown = image::load_from_memory(&image.content).unwrap();
        assert_eq!((shown.width(), shown.height()), (image.size.width, image.size.height));
    }
    let third = AttachmentName::Viewport(ViewportNumber::new(3).unwrap());
    assert_eq!(placeholder.file(&spec, third).await.unwrap(), None);
}

#[tokio::test]
async fn images_of_steps_have_their_names_and_show_what_the_image_shows() {
    let placeholder = Placeholder::new(1 << 20, memory());
    let spec = spec("https://example.com/a", |request| request.scale = Some(2.0));
    let captured = placeholder.capture(&spec, vec!["menu".to_owned(), "cart".to_owned()]).await.unwrap();
    let shown: Vec<_> = captured.step_images.iter().map(|taken| (&*taken.image.name, taken.image.width)).collect();
    assert_eq!(shown, [("menu", 2560), ("cart", 2560)]);
    for (number, taken) in StepImageNumber::all().zip(&captured.step_images) {
        assert_eq!(taken.content, captured.image);
        // Steps are not stored.
        let again = placeholder.file(&spec.without_secrets(), AttachmentName::Step(number)).await.unwrap();
        assert_eq!(again.as_ref(), Some(&taken.content));
    }
}

#[tokio::test(start_paused = true)]
async fn drawing_waits_for_memory_and_gives_it_back() {
    let memory = MemoryBudget::new(1 << 20);
    let placeholder = Placeholder::new(0, memory.clone());
    let spec = spec("https://example.com/", |_| {});
    let all = memory.reserve(1 << 20, WAIT_LIMIT).await.unwrap();
    assert!(matches!(placeholder.draw(&spec).await, Err(Error::Busy)));
    drop(all);
    placeholder.draw(&spec).await.expect("a drawing that needs more than the budget takes all of it");
    assert_eq!(memory.reserved_bytes(), 0);
}

#[tokio::test]
async fn placeholder_has_a_smaller_copy() {
    let placeholder = Placeholder::new(0, memory());
    for (format, fit, size) in
        [("png", "contain", (200, 112)), ("jpeg", "cover", (200, 150)), ("webp", "cover", (200, 150))]
    {
        let json = format!(r#"{{"width": 200, "height": 150, "fit": "{fit}"}}"#);
        let spec = spec("https://example.com/", |request| {
            request.format = Some(format.into());
            assert!(request.set("thumbnail", serde_json::from_str(&json).unwrap()));
        });
        let capture = placeholder.capture(&spec, Vec::new()).await.unwrap();
        let [file] = &capture.files[..] else { panic!("{:?}", capture.files.len()) };
        assert_eq!((file.kind, decode(&file.content, ImageFormat::Jpeg).dimensions()), (FileKind::Thumbnail, size));
        let again = placeholder.file(&spec, AttachmentName::Also(FileKind::Thumbnail)).await.unwrap();
        assert_eq!(again.as_ref(), Some(&file.content));
    }
}
