use uuid::Uuid;

use super::*;

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

fn payer(n: u128) -> PayerId {
    PayerId(Uuid::from_u128(n))
}

fn endpoint(payer: u128, n: u128) -> EndpointId {
    EndpointId(Uuid::from_u128(payer << 32 | n))
}

/// Deliveries to one endpoint, with ids of their own.
fn due(of: u128, to: u128, count: u128) -> Vec<DueDelivery> {
    let delivery = |n: u128| DueDelivery {
        id: DeliveryId(Uuid::from_u128(of << 64 | to << 32 | n)),
        endpoint: endpoint(of, to),
        payer: payer(of),
        due_at: NOW,
        has_timed_out: false,
    };
    (0..count).map(delivery).collect()
}

/// A line in which all endpoints have this pace.
fn line_of(pace: Pace, endpoints: impl IntoIterator<Item = (u128, u128)>) -> Line {
    let mut line = Line::default();
    for (of, to) in endpoints {
        line.remember(endpoint(of, to), pace, NOW);
    }
    line
}

fn of_payer(turns: &[Turn], n: u128) -> usize {
    turns.iter().filter(|turn| turn.payer == payer(n)).count()
}

#[test]
fn payer_with_many_deliveries_leaves_room_for_others() {
    let ten = (0..10).map(|to| (1, to));
    let mut line = line_of(Pace::Quick, ten.clone().chain([(2, 0)]));
    line.add(ten.flat_map(|(of, to)| due(of, to, 50)), NOW);
    let first = line.take();
    assert_eq!((first.len(), of_payer(&first, 1)), (16, 16), "half of the pool");
    line.add(due(2, 0, 9), NOW);
    let second = line.take();
    assert_eq!((second.len(), of_payer(&second, 2)), (4, 4), "four for each endpoint");
    assert_eq!(line.take(), []);
    // An attempt that ends makes room for one of the same endpoint.
    line.end(second[0].delivery, Some(Pace::Quick), NOW);
    assert_eq!(line.take().iter().map(|turn| turn.payer).collect::<Vec<_>>(), [payer(2)]);
}

#[test]
fn payer_with_the_fewest_attempts_is_next() {
    let mut line = line_of(Pace::Quick, (1..=16).map(|of| (of, 0)).chain([(99, 0)]));
    // Sixteen payers use the whole pool, and have much more.
    for of in 1..=16 {
        line.add(due(of, 0, 100), NOW);
    }
    let busy = line.take();
    assert_eq!(busy.len(), 32);
    line.add(due(99, 0, 2), NOW);
    assert_eq!(line.take(), []);
    // The next attempt that ends is followed by one of the payer that waits. Then it has as many as the payer of that
    // attempt, and they take turns.
    for (ended, expected) in busy.iter().zip([99, 1]) {
        line.end(ended.delivery, Some(Pace::Quick), NOW);
        let next = line.take();
        assert_eq!(next.iter().map(|turn| turn.payer).collect::<Vec<_>>(), [payer(expected)]);
    }
}

#[test]
fn payers_with_as_many_attempts_take_turns() {
    let mut line = line_of(Pace::Silent, (1..=40).map(|of| (of, 0)));
    for of in 1..=40 {
        line.add(due(of, 0, 3), NOW);
    }
    let first = line.take();
    assert_eq!(first.len(), 32);
    // Those that had to wait are next, before the second ones of the others.
    for turn in &first {
        line.end(turn.delivery, Some(Pace::Silent), NOW);
    }
    let second = line.take();
    let waited: Vec<_> = second[..8].iter().map(|turn| turn.payer).collect();
    assert_eq!(waited, (33..=40).map(payer).collect::<Vec<_>>());
    assert_eq!(second.len(), 32);
}

#[test]
fn endpoints_that_do_not_respond_use_attempts_of_their_own() {
    let silent = (1..=64).flat_map(|of| (0..10).map(move |to| (of, to)));
    let mut line = line_of(Pace::Silent, silent.clone());
    line.remember(endpoint(99, 0), Pace::Quick, NOW);
    line.add(silent.flat_map(|(of, to)| due(of, to, 20)), NOW);
    let busy = line.take();
    assert_eq!(busy.len(), 32);
    assert!((1..=64).all(|of| of_payer(&busy, of) <= 1), "every account has one before any has two");
    line.add(due(99, 0, 4), NOW);
    assert_eq!(line.take().len(), 4);
}

#[test]
fn unknown_endpoint_is_tried_with_one_message_until_it_responds() {
    let mut line = Line::default();
    line.add(due(1, 0, 9), NOW);
    let first = line.take();
    assert_eq!(first.len(), 1);
    line.end(first[0].delivery, Some(Pace::Quick), NOW);
    assert_eq!(line.take().len(), 4);
    // New endpoints of one payer do not use all attempts at unknown ones.
    let mut line = Line::default();
    line.add((0..10).flat_map(|to| due(1, to, 1)), NOW);
    line.add((2..=20).flat_map(|of| due(of, 0, 1)), NOW);
    let turns = line.take();
    assert_eq!((turns.len(), of_payer(&turns, 1)), (16, 1));
}

#[test]
fn attempt_that_takes_long_leaves_its_pool() {
    let mut line = line_of(Pace::Quick, (1..=8).map(|of| (of, 0)));
    for of in 1..=8 {
        line.add(due(of, 0, 4), NOW);
    }
    let turns = line.take();
    assert_eq!(turns.len(), 32);
    line.add(due(9, 0, 1), NOW);
    line.remember(endpoint(10, 0), Pace::Quick, NOW);
    line.add(due(10, 0, 1), NOW);
    assert_eq!(line.take().len(), 1, "only the unknown one");
    assert!(turns.iter().take(3).all(|turn| line.slow_down(turn.delivery)));
    assert_eq!(line.take().len(), 1);
    for turn in &turns {
        line.end(turn.delivery, Some(Pace::Late), NOW);
    }
}

#[test]
fn long_attempts_beyond_their_limit_must_end() {
    let mut line = line_of(Pace::Quick, (0..10).map(|to| (1, to)));
    line.add((0..10).flat_map(|to| due(1, to, 4)), NOW);
    let turns = line.take();
    let moved = turns.iter().filter(|turn| line.slow_down(turn.delivery)).count();
    assert_eq!((turns.len(), moved), (16, 8), "eight for each account");
    // Twice is no other attempt.
    assert!(line.slow_down(turns[0].delivery));
    for turn in &turns {
        line.end(turn.delivery, Some(Pace::Silent), NOW);
    }
    assert_eq!(line.take().len(), 2, "now tried as endpoints that do not respond");
}

#[test]
fn pace_of_an_endpoint_decides_where_its_waiting_deliveries_are_tried() {
    let mut line = line_of(Pace::Quick, [(1, 0)]);
    line.add(due(1, 0, 9), NOW);
    let turns = line.take();
    assert_eq!(turns.len(), 4);
    line.end(turns[0].delivery, Some(Pace::Silent), NOW);
    assert_eq!(line.take(), [], "three of its attempts are in progress");
    for turn in &turns[1..] {
        line.end(turn.delivery, Some(Pace::Silent), NOW);
    }
    let probe = line.take();
    assert_eq!(probe.len(), 1);
    line.end(probe[0].delivery, Some(Pace::Quick), NOW);
    assert_eq!(line.take().len(), 4);
}

#[test]
fn delivery_whose_attempt_timed_out_before_a_restart_is_known_to_be_silent() {
    let mut line = Line::default();
    let timed_out = |due: Vec<DueDelivery>| due.into_iter().map(|due| DueDelivery { has_timed_out: true, ..due });
    line.add(timed_out(due(1, 0, 1)), NOW);
    assert_eq!(line.take()[0].pool, Pace::Silent);
    // What was seen since counts more.
    let mut line = line_of(Pace::Quick, [(1, 0)]);
    line.add(timed_out(due(1, 0, 1)), NOW);
    assert_eq!(line.take()[0].pool, Pace::Quick);
}

#[test]
fn delivery_is_in_the_line_once_until_its_attempt_ends() {
    let mut line = line_of(Pace::Quick, [(1, 0)]);
    for _ in 0..3 {
        line.add(due(1, 0, 2), NOW);
    }
    let turns = line.take();
    assert_eq!(turns.len(), 2);
    line.add(due(1, 0, 2), NOW);
    assert_eq!(line.take(), []);
    line.end(turns[0].delivery, None, NOW);
    line.add(due(1, 0, 2), NOW);
    assert_eq!(line.take(), turns[..1]);
}

#[test]
fn full_line_leaves_out_deliveries_of_the_payer_with_the_most() {
    let mut line = line_of(Pace::Silent, [(1, 0), (1, 1)]);
    for to in 0..2 {
        line.add(due(1, to, MAX_WAITING as u128), NOW);
    }
    line.add((2..=500).flat_map(|of| due(of, 0, 3)), NOW);
    assert!(line.waiting <= MAX_WAITING && line.known.len() == line.waiting);
    let complete = (2..=500).filter(|of| line.endpoints[&endpoint(*of, 0)].waiting.len() == 3).count();
    assert_eq!(complete, 499);
}

#[test]
fn nothing_is_kept_of_endpoints_without_deliveries_but_their_pace() {
    let mut line = Line::default();
    for of in 0..2 * MAX_REMEMBERED as u128 {
        line.add(due(of, 0, 1), NOW + Duration::from_millis(of as u64));
        let turn = line.take().remove(0);
        line.end(turn.delivery, Some(Pace::Silent), NOW + Duration::from_millis(of as u64));
    }
    assert!(line.paces.len() <= MAX_REMEMBERED);
    assert_eq!((line.endpoints.len(), line.known.len(), line.waiting), (0, 0, 0));
    assert_eq!(line.pace(endpoint(2 * MAX_REMEMBERED as u128 - 1, 0)), Pace::Silent);
    assert!(Pace::ALL.into_iter().all(|pace| line.pools.of(pace).is_idle()));
}
