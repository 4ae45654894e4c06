use grabd_domain::Timestamp;
use grabd_domain::capture::{CaptureRequest, Device};
use grabd_domain::grabs::{Class, FileKey, GrabFile, GrabSlice, SlicePlace};
use grabd_domain::ids::{GrabId, TeamId};

use super::*;

#[test]
fn image_is_shown_in_the_size_of_its_page() {
    let phone = Device::Phone.defaults().1;
    for (pixels, scale, expected) in [
        ((1280, 720), Scale::ONE, (1280, 720, false)),
        ((1170, 2532), phone, (390, 844, false)),
        ((1280, 16_384), Scale::ONE, (1280, 16_384, true)),
        ((1, 1), phone, (1, 1, false)),
    ] {
        let Frame { width, height, is_tall } = Frame::of(pixels.0, pixels.1, scale);
        assert_eq!((width, height, is_tall), expected, "{pixels:?}");
    }
}

#[test]
fn durations_and_sizes_are_formatted_in_a_suitable_unit() {
    for (ms, expected) in [(999, "999 ms"), (1830, "1.8 s"), (99_999, "99.9 s"), (123_456, "2 min 3 s")] {
        assert_eq!(seconds(Duration::from_millis(ms)), expected);
    }
    for (bytes, expected) in [(1, "1 byte"), (1000, "1 KB"), (48_213, "49 KB"), (1_250_000, "1.2 MB")] {
        assert_eq!(size(bytes), expected);
    }
}

const NIL: &str = "00000000-0000-0000-0000-000000000000";

#[test]
fn slices_are_listed_after_the_files() {
    let request = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
    let metadata = RenderMetadata {
        files: vec![GrabFile { kind: FileKind::Pdf, key: FileKey::new(1), bytes: 9 }],
        slices: vec![GrabSlice { key: FileKey::new(2), bytes: 1200, place: SlicePlace::new(0, 256, None) }],
        ..RenderMetadata::default()
    };
    let grab = Grab {
        id: NIL.parse::<GrabId>().unwrap(),
        team: NIL.parse::<TeamId>().unwrap(),
        environment: Environment::Live,
        class: Class::Sync,
        spec: CaptureSpec::parse(&request).unwrap(),
        created_at: Timestamp::from_ms(1),
        deleted_at: None,
        attempts: 1,
        state: State::Processing,
    };
    let files = file_links(&grab, &metadata);
    let shown: Vec<_> = files.iter().map(|file| (&*file.label, &*file.size)).collect();
    assert_eq!(shown, [("PDF", "9 bytes"), ("Slice 1", "2 KB")]);
    assert_eq!(files[1].path, format!("/f/{}/slice-01.png", FileKey::new(2).as_str()));
    assert!(files[1].file_name.starts_with("example.com-") && files[1].file_name.ends_with("-slice-01.png"));
}

#[test]
fn title_is_the_url_without_scheme_and_trailing_slash() {
    let of = |url: &str| {
        let request = CaptureRequest { url: Some(url.to_owned()), ..CaptureRequest::default() };
        title(CaptureSpec::parse(&request).unwrap().url.as_str())
    };
    assert_eq!(of("https://example.com/"), "example.com");
    assert_eq!(of("http://example.com/a/?b"), "example.com/a/?b");
    let long = of(&format!("https://example.com/{}", "a".repeat(200)));
    assert_eq!((long.chars().count(), long.ends_with("a…")), (TITLE_CHARS + 1, true));
}

#[test]
fn render_details_list_all_metadata() {
    let metadata = RenderMetadata {
        final_url: Some("https://example.com/b".to_owned()),
        http_status: Some(404),
        settled_by: Some(SettledBy::Deadline),
        blocked_requests: 3,
        image_width: Some(1280),
        image_height: Some(16_384),
        truncated: true,
        warnings: vec![Warning::ImagesFailed(2), Warning::ImagesMissing(1)],
        page: PageInfo {
            title: Some("Home".to_owned()),
            lang: Some("en".to_owned()),
            icon_url: Some("https://example.com/i.png".to_owned()),
            page_width: Some(1280),
            page_height: Some(20_000),
            ..PageInfo::default()
        },
        redirects: Some(1),
        findings: Findings {
            blank: Some(false),
            challenge: Some(Challenge::Datadome),
            consent: Some(Consent::new("onetrust", ConsentResult::Rejected)),
            blocked: Some(BlockedRequests { guard: 3, ads: 2, trackers: 0, asked: 1 }),
        },
        ..RenderMetadata::default()
    };
    let details: Vec<_> = render_details(&metadata).into_iter().map(|detail| (detail.name, detail.value)).collect();
    let details: Vec<_> = details.iter().map(|(name, value)| (*name, &**value)).collect();
    assert_eq!(
        details,
        [
            ("Title", "Home"),
            ("Language", "en"),
            ("Final URL", "https://example.com/b"),
            ("HTTP status", "404"),
            ("Redirects", "1"),
            ("Page", "1280 × 20000 CSS pixels"),
            ("Icon", "https://example.com/i.png"),
            ("Settled", "No, the time limit was reached"),
            ("Blocked requests", "3 to addresses that are not public"),
            ("Challenge", "datadome"),
            ("Cookie banner", "onetrust: consent was refused"),
            ("Blocked ads", "2"),
            ("Blocked on request", "1"),
            ("Truncated", "the page exceeds the maximum image size"),
            ("Warnings", "2 images could not be loaded; An image had not arrived"),
        ]
    );
    assert!(render_details(&RenderMetadata::default()).is_empty());
}
