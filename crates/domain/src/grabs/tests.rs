use super::*;
use crate::capture::CaptureRequest;

fn grab(attempts: u32, state: State, deleted: bool) -> Grab {
    let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
    Grab {
        id: GrabId(uuid::Uuid::nil()),
        team: TeamId(uuid::Uuid::nil()),
        environment: Environment::Live,
        class: Class::Sync,
        spec: CaptureSpec::parse(&request).unwrap(),
        created_at: Timestamp::from_ms(0),
        deleted_at: deleted.then_some(Timestamp::from_ms(1)),
        attempts,
        state,
    }
}

fn failed() -> State {
    State::Failed {
        finished_at: Timestamp::from_ms(0),
        failure: Failure::new(FailureReason::RenderFailed, "x"),
        metadata: RenderMetadata::default(),
    }
}

#[test]
fn too_large_image_fails_with_both_sizes_and_a_remedy() {
    let text = |bytes, max| Failure::image_too_large(bytes, max).message;
    assert!(text(52_114_227, 32 << 20).starts_with("The image has 49.7 MB; at most 32 MB are allowed. Use format"));
    assert!(text((1 << 20) + 1, 1 << 20).starts_with("The image has 1.1 MB; at most 1 MB"), "never the same size");
}

#[test]
fn revision_increases_with_every_transition() {
    let paths = [
        vec![grab(0, State::Pending, false), grab(0, failed(), false), grab(0, failed(), true)],
        vec![
            grab(0, State::Pending, false),
            grab(1, State::Processing, false),
            grab(1, State::Pending, false),
            grab(2, State::Processing, false),
            grab(2, failed(), false),
            grab(2, failed(), true),
        ],
    ];
    for path in paths {
        let revisions: Vec<u64> = path.iter().map(Grab::revision).collect();
        assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
    }
}

#[test]
fn timeout_is_the_targets_fault_if_it_had_most_of_the_time() {
    let limit = Duration::from_secs(25);
    for (ms, expected) in [(0, "service"), (12_499, "service"), (12_500, "target"), (25_000, "target")] {
        let cause = Failure::timeout_cause(Duration::from_millis(ms), limit);
        assert_eq!(cause.as_str(), expected, "{ms} ms");
    }
}

#[test]
fn image_key_parse_rejects_malformed_text() {
    let key = ImageKey::new(u128::MAX, "png");
    assert_eq!(ImageKey::parse(key.as_str()), Some(key.clone()));
    assert_eq!(key.path().len(), "i/ab/cd/".len() + 26);
    assert_ne!(key, ImageKey::new(u128::MAX - 1, "png"));
    for text in ["", "../../etc/passwd", "a.png", "0123456789012345678901.gif", "012345678901234567890/.png"] {
        assert_eq!(ImageKey::parse(text), None, "{text}");
    }
}

#[test]
fn metadata_round_trips_and_skips_unknown_warnings() {
    let all = [
        Warning::RequestsInFlight(2),
        Warning::ImagesFailed(3),
        Warning::ImagesMissing(1),
        Warning::FontsFailed(1),
        Warning::SpinnerVisible,
        Warning::Blank,
        Warning::WideCut,
        Warning::Endless,
        Warning::VirtualList,
        Warning::FrameUnfinished,
        Warning::AlsoTruncated,
        Warning::DocumentIncomplete,
        Warning::WorkPending,
        Warning::ScrollerCut,
        Warning::GlyphsMissing(4),
        Warning::SelectorMany(2),
        Warning::AreasBlank(1),
        Warning::FirstScreenDiffers,
        Warning::NoMainContent,
        Warning::EvidenceTimestampFailed,
    ];
    let metadata = RenderMetadata { warnings: all.to_vec(), ..RenderMetadata::default() };
    let stored = serde_json::to_string(&metadata).unwrap();
    assert!(stored.contains(r#""warnings":["requests_in_flight:2","images_failed:3""#), "{stored}");
    assert_eq!(serde_json::from_str::<RenderMetadata>(&stored).unwrap(), metadata);
    let later = stored.replace("\"blank\"", "\"a_later_warning\"");
    assert_eq!(serde_json::from_str::<RenderMetadata>(&later).unwrap().warnings.len(), all.len() - 1);
    assert!(!serde_json::to_string(&RenderMetadata::default()).unwrap().contains("warnings"));
    for text in ["", "blank:1", "images_failed", "images_failed:x", "images_failed:-1", "Blank"] {
        assert_eq!(Warning::parse(text), None, "{text}");
    }
}

#[test]
fn status_names_round_trip() {
    for status in [Status::Pending, Status::Processing, Status::Done, Status::Failed] {
        assert_eq!(Status::parse(status.as_str()), Some(status));
    }
    assert_eq!(Status::parse("queued"), None);
}
