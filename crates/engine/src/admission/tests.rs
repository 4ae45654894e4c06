use grabd_domain::admission::QueueAhead;
use grabd_domain::ids::TeamId;
use grabd_domain::team_limits::LimitChange;
use grabd_store::Store;
use grabd_store::accounts::NewTeam;
use uuid::Uuid;

use super::*;

const S: Duration = Duration::from_secs(1);

fn admission() -> Admission {
    with_limits(Arc::default())
}

fn with_limits(limits: Arc<TeamLimits>) -> Admission {
    let settings = Settings {
        has_strangers: true,
        failed_seconds_per_minute: 60,
        failed_seconds_per_minute_unpaid: 20,
        paid_slots_percent: 25,
    };
    Admission::new(settings, limits)
}

fn payer(number: u128, has_paid: bool) -> Payer {
    Payer { id: PayerId(Uuid::from_u128(number)), has_paid }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_ms(seconds * 1000)
}

#[test]
fn payer_is_refused_until_its_budget_is_refilled() {
    let admission = admission();
    let free = payer(1, false);
    assert_eq!(admission.record(free, 15 * S, SlotUse::Failed, at(0)), None);
    assert_eq!(admission.check(free, at(0)), Ok(()));
    // Overdrawn by 20 s: empty for one minute and a millisecond.
    let until = Timestamp::from_ms(60_001);
    assert_eq!(admission.record(free, 25 * S, SlotUse::Failed, at(0)), Some(until));
    let refused = Fault::FailedRenderTimeExceeded { per_minute: 20, retry_after_s: 61 };
    assert_eq!(admission.check(free, at(0)), Err(refused));
    let almost = Fault::FailedRenderTimeExceeded { per_minute: 20, retry_after_s: 1 };
    assert_eq!(admission.check(free, at(60)), Err(almost));
    assert_eq!(admission.check(free, until), Ok(()));
    assert_eq!(admission.check(payer(2, false), at(0)), Ok(()), "other accounts are not affected");
}

#[test]
fn images_use_no_budget() {
    let admission = admission();
    for _ in 0..100 {
        assert_eq!(admission.record(payer(1, false), 25 * S, SlotUse::Fine, at(0)), None);
    }
    assert_eq!(admission.check(payer(1, false), at(0)), Ok(()));
}

#[test]
fn time_after_a_result_uses_the_budget_and_is_no_render() {
    let admission = admission();
    let usual = admission.state.lock().all.smoothed();
    assert_eq!(admission.spend(payer(1, false), 25 * S, at(0)), Some(Timestamp::from_ms(15_001)));
    assert!(admission.check(payer(1, false), at(0)).is_err());
    assert_eq!(admission.state.lock().all.smoothed(), usual);
}

#[test]
fn payer_that_has_paid_has_the_larger_budget() {
    let admission = admission();
    for (number, has_paid, expected) in [(1, false, false), (2, true, true)] {
        admission.record(payer(number, has_paid), 40 * S, SlotUse::Failed, at(0));
        assert_eq!(admission.check(payer(number, has_paid), at(0)).is_ok(), expected, "paid: {has_paid}");
    }
}

#[test]
fn budgets_are_forgotten_when_full_and_bounded_otherwise() {
    let admission = admission();
    for number in 0..MAX_BUDGETS + 10 {
        admission.record(payer(number as u128, false), 30 * S, SlotUse::Failed, at(0));
    }
    assert_eq!(admission.state.lock().budgets.len(), MAX_BUDGETS);
    admission.forget_full_budgets(at(89));
    assert_eq!(admission.state.lock().budgets.len(), MAX_BUDGETS);
    // Full budgets make room for the next failure.
    admission.record(payer(u128::MAX, false), S, SlotUse::Failed, at(90));
    assert_eq!(admission.state.lock().budgets.len(), 1);
    admission.forget_full_budgets(at(93));
    assert!(admission.state.lock().budgets.is_empty());
}

#[test]
fn slots_are_kept_while_a_paying_payer_is_active() {
    let admission = admission();
    admission.check(payer(1, false), at(0)).unwrap();
    assert_eq!(admission.kept_percent(at(0)), 0);
    admission.check(payer(2, true), at(0)).unwrap();
    assert_eq!((admission.kept_percent(at(3599)), admission.kept_percent(at(3600))), (25, 0));
}

#[test]
fn wait_limit_follows_the_renders_and_the_kind_of_payer() {
    let admission = admission();
    for _ in 0..99 {
        admission.record(payer(1, false), 24 * S, SlotUse::Fine, at(0));
    }
    let busy = Occupancy { slots: 4, idle: 0, kept: 1, open_to_all: 0 };
    let ahead = QueueAhead { all: 3, paid: 0 };
    let free = admission.load(busy).wait_limit(payer(1, false), 25 * S);
    // Three slots for everybody, four renders of almost 24 s; the last two seconds do not count.
    assert_eq!(free.longest, 23 * S);
    assert_eq!(free.expected(ahead).as_secs(), 31);
    assert!(free.exceeded(ahead).is_some());
    // The kept slot is not slowed down by the renders of others: the first guess of 2 s applies.
    let paying = admission.load(busy).wait_limit(payer(2, true), 25 * S);
    assert_eq!((paying.expected(ahead), paying.exceeded(ahead)), (2 * S, None));
    let idle = Occupancy { idle: 1, ..busy };
    assert_eq!(admission.load(idle).wait_limit(payer(2, true), 25 * S).expected(ahead), Duration::ZERO);
    assert!(admission.load(idle).wait_limit(payer(1, false), 25 * S).exceeded(ahead).is_some());
}

#[tokio::test]
async fn own_budget_of_a_payer_replaces_the_setting_until_it_is_removed() {
    let store = Store::open("sqlite::memory:").await.unwrap();
    store.migrate().await.unwrap();
    let (team, now) = (TeamId(Uuid::from_u128(1)), at(0));
    store.accounts().create_team(NewTeam { id: team, name: "A team".into(), now }).await.unwrap();
    let limits = Arc::new(TeamLimits::default());
    let admission = with_limits(Arc::clone(&limits));
    // Without an owner the team is the payer, and a paid one would have 60 seconds.
    let paid = Payer { has_paid: true, ..Payer::of_team(team) };
    for (change, allowed) in [("failed_seconds_per_minute=5", 5), ("failed_seconds_per_minute=300", 300)] {
        let change = LimitChange::parse(change).unwrap();
        store.limits().change_team_limits(team, vec![change], now).await.unwrap();
        assert!(limits.refresh(&store).await.unwrap());
        admission.forget_full_budgets(at(100_000));
        assert_eq!(admission.record(paid, (allowed - 1) * S, SlotUse::Failed, now), None, "{change}");
        admission.record(paid, 2 * S, SlotUse::Failed, now).unwrap();
        let Err(Fault::FailedRenderTimeExceeded { per_minute, .. }) = admission.check(paid, now) else {
            panic!("the budget of {change} is used up")
        };
        assert_eq!(per_minute, allowed, "{change}");
        assert_eq!(admission.check(payer(2, true), now), Ok(()));
        admission.forget_full_budgets(at(50));
        assert_eq!(admission.state.lock().budgets.len(), 1, "it is not full yet");
        admission.forget_full_budgets(at(100_000));
        assert!(admission.state.lock().budgets.is_empty());
    }
    let reset = LimitChange::reset("failed_seconds_per_minute").unwrap();
    store.limits().change_team_limits(team, vec![reset], now).await.unwrap();
    assert!(limits.refresh(&store).await.unwrap());
    admission.record(paid, 61 * S, SlotUse::Failed, now).unwrap();
    assert!(matches!(admission.check(paid, now), Err(Fault::FailedRenderTimeExceeded { per_minute: 60, .. })));
    store.close().await;
}
