//! Tests of the stages that renderers report.

use grabd_domain::capture::CaptureRequest;

use super::*;
use crate::random;

#[test]
fn stages_are_accepted_once_from_the_session_that_holds_the_lease() {
    let now = Timestamp::from_ms(0);
    let dispatcher = Dispatcher::default();
    let (id, stranger) = (random::session_id(), random::session_id());
    let slots = SessionSlots::Own(1);
    let (_messages, _others) = (dispatcher.attach(id, slots, now), dispatcher.attach(stranger, slots, now));
    let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
    let (grab, token) = (random::grab_id(now), random::lease_token());
    let lease = Lease {
        grab,
        token,
        upload_key: ImageKey::new(1, "png"),
        spec: CaptureSpec::parse(&request).unwrap(),
        proxy: None,
        budget: Duration::from_secs(1),
        attempt: 3,
        payer: Payer::of_team(random::team_id(now)),
        since: now,
    };
    let slot = dispatcher.reserve_for_waiting().into_iter().find(|slot| slot.session() == id).unwrap();
    slot.assign(lease).unwrap();
    assert_eq!(dispatcher.stages_of(grab), Some(Stages::of_attempt(3)));

    assert_eq!(dispatcher.record_stage(stranger, token, Stage::Navigating, 1), None, "the lease of another session");
    assert_eq!(dispatcher.record_stage(id, random::lease_token(), Stage::Navigating, 1), None, "an unknown lease");
    let (of, first) = dispatcher.record_stage(id, token, Stage::Navigating, 1).unwrap();
    assert_eq!((of, first.current(), first.attempt()), (grab, Some((Stage::Navigating, 1)), 3));
    // However often a renderer reports stages, each is news once.
    let accepted = (0..100).flat_map(|_| Stage::ALL).filter(|stage| {
        let reported = dispatcher.record_stage(id, token, *stage, 2);
        reported.is_some()
    });
    assert_eq!(accepted.count(), 3);
    assert_eq!(dispatcher.stages_of(grab).and_then(|stages| stages.current()), Some((Stage::Captured, 2)));

    dispatcher.forget(token);
    assert_eq!(dispatcher.stages_of(grab), None);
    assert_eq!(dispatcher.record_stage(id, token, Stage::Captured, 3), None, "the lease has ended");
}
