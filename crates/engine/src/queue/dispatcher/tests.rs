use grabd_domain::capture::CaptureRequest;
use grabd_domain::ids::PayerId;
use grabd_domain::limits::{MAX_LEASE_MARGIN, MAX_RENDER_BUDGET};
use uuid::Uuid;

use super::*;
use crate::random;

fn lease() -> Lease {
    let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
    Lease {
        grab: random::grab_id(grabd_domain::Timestamp::from_ms(0)),
        token: random::lease_token(),
        upload_key: ImageKey::new(1, "png"),
        spec: CaptureSpec::parse(&request).unwrap(),
        proxy: None,
        budget: Duration::from_secs(1),
        attempt: 1,
        payer: free(1),
        since: Timestamp::from_ms(0),
    }
}

fn free(number: u128) -> Payer {
    Payer { id: PayerId(Uuid::from_u128(number)), has_paid: false }
}

fn paying() -> Payer {
    Payer { has_paid: true, ..free(9) }
}

fn attached(slots: usize) -> (Dispatcher, SessionId, mpsc::Receiver<SessionMessage>) {
    let dispatcher = Dispatcher::default();
    let id = random::session_id();
    let messages = dispatcher.attach(id, SessionSlots::Own(slots), Timestamp::from_ms(0));
    drop(dispatcher.reserve_for_waiting());
    (dispatcher, id, messages)
}

#[test]
fn dropped_reservation_returns_its_slot() {
    let (dispatcher, _, _messages) = attached(1);
    let first = dispatcher.reserve(free(1), 0).unwrap();
    assert!(dispatcher.reserve(free(1), 0).is_none());
    drop(first);
    assert!(dispatcher.reserve(free(1), 0).is_some());
}

#[test]
fn renderer_that_stops_gets_no_more_work_and_keeps_its_leases() {
    let (dispatcher, id, mut messages) = attached(3);
    dispatcher.reserve(free(1), 0).unwrap().assign(lease()).unwrap();
    let reserved = dispatcher.reserve(free(1), 0).unwrap();
    dispatcher.drain_session(id);
    drop(reserved);
    dispatcher.ready(id, 1);
    assert!(dispatcher.reserve(free(1), 0).is_none());
    dispatcher.notify();
    assert!(dispatcher.reserve_for_waiting().is_empty());
    assert_eq!(dispatcher.occupancy(0).slots, 0);
    assert_eq!(dispatcher.renderers()[0].busy, 1);
    assert!(matches!(messages.try_recv().unwrap(), SessionMessage::Assign(_)));
    assert!(messages.try_recv().is_err(), "one lease was assigned");
}

#[test]
fn offered_slot_is_returned_when_it_stayed_idle() {
    let dispatcher = Dispatcher::default();
    let id = random::session_id();
    let offered = SessionSlots::Offered { all: 4, cores: 3 };
    let mut messages = dispatcher.attach(id, offered, Timestamp::from_ms(0));
    drop(dispatcher.reserve_for_waiting());
    dispatcher.notify();
    assert!(dispatcher.reserve_for_waiting().is_empty(), "nothing is offered yet");
    assert_eq!(dispatcher.occupancy(0).slots, 2, "its share");
    dispatcher.ready(id, 3);
    let mut reserved = dispatcher.reserve_for_waiting();
    assert_eq!(reserved.len(), 3);
    let used = reserved.pop().unwrap();
    drop(reserved);
    dispatcher.return_unused(id);
    assert!(messages.try_recv().is_err(), "none was idle all the time");
    let two = dispatcher.reserve(free(1), 0).unwrap();
    drop(two);
    dispatcher.return_unused(id);
    assert!(matches!(messages.try_recv().unwrap(), SessionMessage::Return(1)));
    dispatcher.return_unused(id);
    assert!(matches!(messages.try_recv().unwrap(), SessionMessage::Return(1)));
    dispatcher.return_unused(id);
    assert!(messages.try_recv().is_err() && dispatcher.reserve(free(1), 0).is_none());
    used.assign(lease()).unwrap();
    assert_eq!(dispatcher.renderers()[0].busy, 1);
    // Own slots stay.
    let (own, id, mut messages) = attached(1);
    own.return_unused(id);
    assert!(messages.try_recv().is_err() && own.reserve(free(1), 0).is_some());
}

#[test]
fn cores_together_count_the_slots_that_there_are() {
    let dispatcher = Dispatcher::default();
    let counted = [2, 2, 2, 1].map(|all| {
        drop(dispatcher.attach(random::session_id(), SessionSlots::Offered { all, cores: 3 }, Timestamp::from_ms(0)));
        dispatcher.occupancy(0).slots
    });
    assert_eq!(counted, [1, 2, 2, 3], "a third of 2, 4, 6 and 7 slots, rounded up");
}

#[test]
fn closed_dispatcher_leases_nothing() {
    let (dispatcher, _, _messages) = attached(2);
    dispatcher.reserve(free(1), 0).unwrap().assign(lease()).unwrap();
    assert_eq!(dispatcher.close(), 1);
    assert!(dispatcher.reserve(free(1), 0).is_none());
    dispatcher.notify();
    assert!(dispatcher.reserve_for_waiting().is_empty());
}

#[test]
fn renderers_reports_slots_and_the_last_heartbeat() {
    let (dispatcher, id, _messages) = attached(3);
    let reserved = dispatcher.reserve(free(1), 0).unwrap();
    let status = RendererStatus { browser: "Chromium 1".to_owned(), ..RendererStatus::default() };
    dispatcher.record_heartbeat(id, RendererStatus::default(), Timestamp::from_ms(1));
    dispatcher.record_heartbeat(id, status.clone(), Timestamp::from_ms(2));
    let (now, heartbeat) = (Timestamp::from_ms(0), Some((status, Timestamp::from_ms(2))));
    let expected = AttachedRenderer { session: id, attached_at: now, slots: 3, busy: 1, heartbeat };
    assert_eq!(dispatcher.renderers(), std::slice::from_ref(&expected));
    drop(reserved);
    assert_eq!(dispatcher.renderers(), [AttachedRenderer { busy: 0, ..expected }]);
    dispatcher.detach(id);
    dispatcher.record_heartbeat(id, RendererStatus::default(), Timestamp::from_ms(3));
    assert_eq!(dispatcher.renderers(), []);
}

#[test]
fn reserve_returns_none_while_jobs_wait() {
    let (dispatcher, _, _messages) = attached(1);
    dispatcher.notify();
    assert!(dispatcher.reserve(free(1), 0).is_none());
    assert_eq!(dispatcher.reserve_for_waiting().len(), 1);
    assert!(dispatcher.reserve(free(1), 0).is_some());
}

#[test]
fn lease_is_held_from_assignment_to_cancellation() {
    let (dispatcher, id, mut messages) = attached(1);
    let lease = lease();
    let (grab, token, key) = (lease.grab, lease.token, lease.upload_key.clone());
    dispatcher.reserve(free(1), 0).unwrap().assign(lease).unwrap();
    assert!(matches!(messages.try_recv().unwrap(), SessionMessage::Assign(lease) if lease.token == token));
    assert_eq!(dispatcher.upload_key(token), Some(key));
    dispatcher.cancel(grab);
    assert!(matches!(messages.try_recv().unwrap(), SessionMessage::Cancel(cancelled) if cancelled == token));
    assert_eq!(dispatcher.upload_key(token), None);
    assert!(dispatcher.reserve(free(1), 0).is_none(), "the slot is busy until the renderer reports ready");
    dispatcher.ready(id, 1);
    assert!(dispatcher.reserve(free(1), 0).is_some());
}

#[test]
fn kept_slot_is_reserved_for_paying_payers_only() {
    let (dispatcher, _, _messages) = attached(4);
    let reserved: Vec<_> = (0..3).map(|number| dispatcher.reserve(free(number), 25).unwrap()).collect();
    assert!(dispatcher.reserve(free(7), 25).is_none(), "the last slot is kept");
    assert_eq!(dispatcher.occupancy(25), Occupancy { slots: 4, idle: 1, kept: 1, open_to_all: 0 });
    assert_eq!(dispatcher.occupancy(0).open_to_all, 1);
    assert!(dispatcher.reserve(paying(), 25).is_some());
    // A lease counts like its reservation.
    for slot in reserved {
        slot.assign(Lease { token: random::lease_token(), ..lease() }).unwrap();
    }
    assert!(dispatcher.reserve(free(7), 25).is_none());
    assert_eq!(dispatcher.open_slots(25).left(), 0);
    assert!(dispatcher.reserve(free(7), 0).is_some(), "nothing is kept without paying accounts");
}

#[test]
fn expired_lease_is_forgotten() {
    let (dispatcher, _, _messages) = attached(2);
    dispatcher.reserve(free(1), 50).unwrap().assign(lease()).unwrap();
    let expired = Timestamp::from_ms(0) + MAX_RENDER_BUDGET + MAX_LEASE_MARGIN + LEASE_MARGIN;
    dispatcher.forget_expired(expired - Duration::from_millis(1));
    assert_eq!(dispatcher.open_slots(50).left(), 0);
    dispatcher.forget_expired(expired);
    assert_eq!(dispatcher.open_slots(50).left(), 1);
}

#[test]
fn ended_lease_opens_its_slot_for_all_payers() {
    let (dispatcher, id, _messages) = attached(2);
    let lease = lease();
    let (grab, token) = (lease.grab, lease.token);
    dispatcher.reserve(free(1), 50).unwrap().assign(lease).unwrap();
    assert!(dispatcher.reserve(free(2), 50).is_none());
    dispatcher.hold_back();
    let ended = EndedLease { payer: free(1), since: Timestamp::from_ms(0), attempt: 1, lost: Duration::ZERO };
    assert_eq!(dispatcher.lease_of(grab), Some(ended));
    assert_eq!(dispatcher.forget(token), Some(ended));
    assert_eq!(dispatcher.forget(token), None);
    // What runs of its page still uses the slot.
    dispatcher.notify();
    assert_eq!((dispatcher.open_slots(50).left(), dispatcher.occupancy(50).open_to_all), (0, 0));
    assert_eq!(dispatcher.take_ended(random::session_id(), token), None, "of another session");
    assert_eq!(dispatcher.take_ended(id, token), Some(free(1)));
    assert_eq!(dispatcher.take_ended(id, token), None);
    dispatcher.hold_back();
    dispatcher.ready(id, 1);
    // Jobs that were held back go first.
    assert!(dispatcher.reserve(free(2), 50).is_none());
    let mut open = dispatcher.open_slots(50);
    assert_eq!((open.left(), dispatcher.reserve_for_waiting().len()), (1, 2));
    assert_eq!(dispatcher.open_slots(50).left(), 0, "claimed");
    open.take();
    assert_eq!(open.left(), 0);
    drop(open);
    assert!(dispatcher.reserve(free(2), 50).is_some());
}

#[test]
fn assign_fails_when_the_session_is_gone() {
    let (dispatcher, id, messages) = attached(2);
    let reserved = dispatcher.reserve(free(1), 0).unwrap();
    dispatcher.detach(id);
    assert!(reserved.assign(lease()).is_err());
    let (dispatcher, ..) = (attached(1).0, drop(messages));
    assert!(dispatcher.reserve(free(1), 0).unwrap().assign(lease()).is_err(), "its receiver is dropped");
}

#[test]
fn payer_of_a_cancelled_lease_is_known_until_its_slot_is_free_or_its_session_ends() {
    let (dispatcher, id, _messages) = attached(3);
    let leases = [lease(), lease(), lease()];
    let of = leases.each_ref().map(|lease| (lease.grab, lease.token));
    for lease in leases {
        dispatcher.reserve(free(1), 0).unwrap().assign(lease).unwrap();
    }
    assert!(dispatcher.cancel(of[0].0).is_some() && dispatcher.forget(of[1].1).is_some());
    assert_eq!(dispatcher.take_ended(id, of[0].1), Some(free(1)));
    assert_eq!(dispatcher.take_ended(id, of[2].1), None, "it has not ended");
    dispatcher.forget_expired(Timestamp::from_ms(0) + 2 * MAX_LEASE);
    assert_eq!(dispatcher.take_ended(id, of[1].1), None, "forgotten");
    dispatcher.forget(of[2].1);
    dispatcher.detach(id);
    assert_eq!(dispatcher.take_ended(id, of[2].1), None);
}

#[test]
fn time_of_lost_attempts_is_kept_for_the_next_one() {
    let (dispatcher, id, _messages) = attached(1);
    let (first, grab) = (lease(), random::grab_id(Timestamp::from_ms(0)));
    let token = first.token;
    dispatcher.reserve(free(1), 0).unwrap().assign(Lease { grab, ..first }).unwrap();
    let ended = dispatcher.forget(token).unwrap();
    dispatcher.note_lost(grab, ended, Timestamp::from_ms(7_000));
    dispatcher.ready(id, 1);
    drop(dispatcher.reserve_for_waiting());
    let second = Lease { grab, attempt: 2, since: Timestamp::from_ms(8_000), ..lease() };
    let token = second.token;
    dispatcher.reserve(free(1), 0).unwrap().assign(second).unwrap();
    let ended = dispatcher.forget(token).unwrap();
    assert_eq!((ended.lost, ended.attempt), (Duration::from_secs(7), 2));
    // A grab that is not attempted again is forgotten.
    dispatcher.note_lost(grab, ended, Timestamp::from_ms(9_000));
    dispatcher.forget_expired(Timestamp::from_ms(9_000) + MAX_LEASE);
    assert_eq!(dispatcher.lock().ended.take_lost(grab), Duration::ZERO);
}
