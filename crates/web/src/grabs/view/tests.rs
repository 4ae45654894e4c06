use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::capture::{CaptureRequest, CaptureSpec, Device, FileKind};
use grabd_domain::grabs::{
    BlockedRequests, Challenge, Class, Consent, ConsentResult, FileKey, Findings, GrabFile, GrabSlice, GrabStepImage,
    ImageKey, PageInfo, PerceptualHash, RenderMetadata, SettledBy, SlicePlace, StepImage, Warning,
};
use grabd_domain::ids::{GrabId, TeamId};

use super::details::{render_details, request as request_of};
use super::files::file_links;
use super::units::size;
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

fn grab_of(request: &CaptureRequest, state: State) -> Grab {
    Grab {
        id: NIL.parse::<GrabId>().unwrap(),
        team: NIL.parse::<TeamId>().unwrap(),
        environment: Environment::Live,
        class: Class::Sync,
        spec: CaptureSpec::parse(request).unwrap(),
        created_at: Timestamp::from_ms(1),
        deleted_at: None,
        attempts: 1,
        state,
    }
}

#[test]
fn options_that_are_on_or_off_are_shown_as_yes_or_no() {
    let request = CaptureRequest {
        url: Some("https://example.com/".to_owned()),
        full_page: Some(true),
        javascript: Some(false),
        ..CaptureRequest::default()
    };
    let details = request_of(&grab_of(&request, State::Pending));
    let value = |name: &str| details.iter().find(|detail| detail.name == name).map(|detail| &*detail.value);
    assert_eq!((value("Full page"), value("JavaScript")), (Some("Yes"), Some("No")));
    assert_eq!(value("Width"), Some("1280 pixels"));
}

#[test]
fn identifiers_are_the_id_and_the_hashes() {
    let request = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
    let names = |state| identifiers(&grab_of(&request, state)).iter().map(|one| one.name).collect::<Vec<_>>();
    assert_eq!(names(State::Pending), ["Id"]);
    let metadata = RenderMetadata {
        image_sha256: Some("ab".repeat(32)),
        phash: PerceptualHash::parse("00ff00ff00ff00ff"),
        ..RenderMetadata::default()
    };
    let image = Some(ImageKey::new(1, "png"));
    let done = State::Done { finished_at: Timestamp::from_ms(2), image, size_bytes: 1, execution_ms: 1, metadata };
    assert_eq!(names(done), ["Id", "SHA-256 of the image", "Perceptual hash"]);
}

#[test]
fn sentences_begin_with_a_capital_letter() {
    assert_eq!(capitalized("nothing changed"), "Nothing changed");
    assert_eq!((capitalized("2.1 % changed"), capitalized("")), ("2.1 % changed".to_owned(), String::new()));
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
    let grab = grab_of(&request, State::Processing);
    let files = file_links(&grab, &metadata);
    let shown: Vec<_> = files.iter().map(|file| (&*file.label, &*file.size)).collect();
    assert_eq!(shown, [("PDF", "9 bytes"), ("Slice 1", "2 KB")]);
    let previews: Vec<_> = files.iter().map(|file| (&*file.extension, file.preview)).collect();
    assert_eq!(previews, [("PDF", None), ("PNG", Some((1280, 256)))]);
    assert_eq!(files[1].path, format!("/f/{}/slice-01.png", FileKey::new(2).as_str()));
    assert!(files[1].file_name.starts_with("example.com-") && files[1].file_name.ends_with("-slice-01.png"));
}

#[test]
fn images_of_steps_are_listed_with_their_names() {
    let request = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
    let image = StepImage { name: "menu".to_owned(), width: 780, height: 1688 };
    let metadata = RenderMetadata {
        step_images: vec![GrabStepImage { key: FileKey::new(2), bytes: 9, image }],
        ..RenderMetadata::default()
    };
    let files = file_links(&grab_of(&request, State::Processing), &metadata);
    assert_eq!((&*files[0].label, files[0].preview), ("menu", Some((780, 1688))));
    assert!(files[0].file_name.ends_with("-capture-1.png"), "{}", files[0].file_name);
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
    let asked = "https://example.com/a";
    let details: Vec<_> =
        render_details(&metadata, asked).into_iter().map(|detail| (detail.name, detail.value)).collect();
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
            ("Truncated", "Yes, the page exceeds the maximum image size"),
            ("Warnings", "2 images could not be loaded; An image had not arrived"),
        ]
    );
    assert!(render_details(&RenderMetadata::default(), asked).is_empty());
    let same = render_details(&metadata, "https://example.com/b");
    assert!(same.iter().all(|detail| detail.name != "Final URL"), "the URL is on the page already");
}
