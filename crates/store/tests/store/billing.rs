//! Reads of the usage and credits pages, and refunds.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Day;
use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::credits::{DisputeState, EntryKind, LotKind};
use grabd_domain::grabs::{Class, ImageKey, State};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::credits::{Clawback, ClawbackOutcome, Dispute, Grant, GrantOutcome, Purchase, Receipt, Share};
use grabd_store::grabs::{DailyOutcomeCount, FailureSource, NewGrab, NewPlaceholder};

use crate::harness::{NOW, TestDb, completion, facts, failing, on_both, spec};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Grants a lot for payment `pi_1`.
async fn grant_purchase(db: &TestDb, team: TeamId, credits: u32) {
    db.store.credits().grant_purchase(purchase(team, credits)).await.unwrap();
}

fn purchase(team: TeamId, credits: u32) -> Purchase {
    let source_ref = "stripe:pi_1".to_owned();
    Purchase(Grant { team, kind: LotKind::Prepaid, credits, expires_at: None, source_ref, now: NOW })
}

fn dispute(id: &str, state: DisputeState) -> Dispute {
    let (source_ref, reference) = ("stripe:pi_1".to_owned(), format!("dispute {id} of stripe:pi_1"));
    Dispute { source_ref, reference, state, now: NOW }
}

/// Amounts of the adjustments of a team, oldest first.
async fn adjustments(db: &TestDb, team: TeamId) -> Vec<i32> {
    let entries = db.store.credits().ledger(team, None, 100).await.unwrap();
    entries.iter().rev().filter(|entry| entry.kind == EntryKind::Adjust).map(|entry| entry.amount).collect()
}

fn refund(parts: u64, of: u64) -> Clawback {
    let (source_ref, reference) = ("stripe:pi_1".to_owned(), "stripe:refund:pi_1".to_owned());
    Clawback { source_ref, share: Share { parts, of }, reference, now: NOW }
}

/// Creates an ended live grab, created `days_ago`.
async fn ended(db: &TestDb, team: TeamId, days_ago: u32, done: bool) {
    let new = db.new_grab(team, Class::Sync);
    let at = NOW - DAY * days_ago;
    db.store.grabs().create(NewGrab { now: at, ..new }).await.unwrap();
    let leased = db.lease_one().await;
    match done {
        true => db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap(),
        false => {
            db.store.grabs().fail(failing(leased.grab, FailureSource::Lease(leased.token), NOW)).await.unwrap().unwrap()
        }
    };
}

on_both! {
    async fn holdings_lists_lots_with_remaining_credits_and_origin(db) {
        let (team, other) = (db.team(0).await, db.team(7).await);
        grant_purchase(db, team, 2).await;
        db.grant(team, LotKind::Subscription, 9, Some(NOW + DAY)).await;
        db.grant(team, LotKind::Subscription, 5, Some(NOW + DAY * 2)).await;
        db.pending(team).await;
        let lots = db.store.credits().holdings(team, 10).await.unwrap();
        let seen: Vec<_> = lots.iter().map(|own| (own.lot.kind, own.lot.remaining, own.lot.held)).collect();
        let (term, prepaid) = (LotKind::Subscription, LotKind::Prepaid);
        assert_eq!(seen, [(term, 9, 1), (term, 5, 0), (prepaid, 2, 0)]);
        assert_eq!((lots[2].source_ref.as_str(), lots[2].granted_at), ("stripe:pi_1", NOW));
        assert_eq!(db.store.credits().holdings(team, 2).await.unwrap(), lots[..2]);
        assert_eq!(db.store.credits().holdings(other, 10).await.unwrap().len(), 1);
        // A fully used lot is only in the ledger.
        db.store.credits().claw_back(refund(1, 1)).await.unwrap().unwrap();
        assert_eq!(db.store.credits().holdings(team, 10).await.unwrap(), lots[..2]);
    }

    async fn ended_grabs_are_counted_by_day_and_environment(db) {
        let (team, other) = (db.team(20).await, db.team(5).await);
        for (days_ago, done) in [(0, true), (0, true), (0, false), (29, true), (30, true)] {
            ended(db, team, days_ago, done).await;
        }
        ended(db, other, 0, true).await;
        let outcome = State::Done {
            finished_at: NOW,
            image: Some(ImageKey::new(7, "png")),
            size_bytes: 10,
            execution_ms: 2,
            metadata: facts(),
        };
        let id = GrabId(db.id());
        let (idempotency, fingerprint) = (None, None);
        let placeholder = NewPlaceholder { id, team, creator: None, spec: spec(), now: NOW, outcome, idempotency, fingerprint, ceiling: None };
        db.store.grabs().create_placeholder(placeholder).await.unwrap();
        db.pending(team).await;
        let today = Day::of(NOW);
        let mut counted = db.store.grabs().count_ended_by_day(team, today.before(29), today).await.unwrap();
        counted.sort_by_key(|row| (row.day, row.environment.as_str(), row.done));
        let row =
            |days, environment, done, grabs| DailyOutcomeCount { day: today.before(days), environment, done, grabs };
        assert_eq!(
            counted,
            [row(29, Live, true, 1), row(0, Live, false, 1), row(0, Live, true, 2), row(0, Test, true, 1)]
        );
        assert_eq!(db.store.grabs().count_ended_by_day(db.team(0).await, today.before(29), today).await.unwrap(), []);
    }

    async fn refund_takes_the_unspent_share_once(db) {
        let team = db.team(0).await;
        grant_purchase(db, team, 10).await;
        for _ in 0..3 {
            let leased = db.leased(team).await;
            db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        }
        db.pending(team).await;
        let lot = db.lot(team).await.id;
        let halves = join_all((0..8).map(|_| db.store.credits().claw_back(refund(1, 2)))).await;
        let taken: u32 = halves.into_iter().map(|half| half.unwrap().unwrap().taken).sum();
        assert_eq!((taken, db.credits(team).await), (5, (2, 1)));
        // The other half: one credit is free, one is held, and three are spent.
        let taken = db.store.credits().claw_back(refund(2, 2)).await.unwrap();
        assert_eq!(taken, Some(ClawbackOutcome { lot, team, taken: 1, restored: 0, missing: 4 }));
        assert_eq!(db.credits(team).await, (1, 1));
        let again = db.store.credits().claw_back(refund(2, 2)).await.unwrap();
        assert_eq!(again, Some(ClawbackOutcome { lot, team, taken: 0, restored: 0, missing: 4 }));
        let entries = db.store.credits().ledger(team, None, 10).await.unwrap();
        let adjusted: Vec<_> = entries.iter().filter(|entry| entry.kind == EntryKind::Adjust).collect();
        assert_eq!(adjusted.iter().map(|entry| entry.amount).collect::<Vec<_>>(), [-1, -5]);
        assert!(adjusted.iter().all(|entry| entry.reference.as_deref() == Some("stripe:refund:pi_1")));
    }

    async fn refund_of_an_unknown_payment_takes_nothing(db) {
        let team = db.team(3).await;
        assert_eq!(db.store.credits().claw_back(refund(1, 1)).await.unwrap(), None);
        assert_eq!(db.credits(team).await, (3, 0));
    }

    async fn refund_before_its_payment_is_applied_to_the_grant(db) {
        let team = db.team(0).await;
        assert_eq!(db.store.credits().claw_back(refund(1, 4)).await.unwrap(), None);
        assert_eq!(db.store.credits().claw_back(refund(2, 4)).await.unwrap(), None);
        // An older event that arrives late changes nothing.
        assert_eq!(db.store.credits().claw_back(refund(1, 4)).await.unwrap(), None);
        let (granted, reversed) = db.store.credits().grant_purchase(purchase(team, 10)).await.unwrap();
        let GrantOutcome::New(lot) = granted else { panic!("{granted:?}") };
        assert_eq!(reversed, Some(ClawbackOutcome { lot, team, taken: 5, restored: 0, missing: 0 }));
        assert_eq!(db.credits(team).await, (5, 0));
        let (again, reversed) = db.store.credits().grant_purchase(purchase(team, 10)).await.unwrap();
        assert_eq!(again, GrantOutcome::Repeated(lot));
        assert_eq!(reversed, Some(ClawbackOutcome { lot, team, taken: 0, restored: 0, missing: 0 }));
        db.store.credits().claw_back(refund(4, 4)).await.unwrap().unwrap();
        assert_eq!((db.credits(team).await, adjustments(db, team).await), ((0, 0), vec![-5, -5]));
    }

    async fn refund_and_grant_at_the_same_time_leave_no_refunded_credits(db) {
        for round in 0..8 {
            let team = db.team(0).await;
            let source_ref = format!("stripe:pi_race_{round}");
            let refund = Clawback { source_ref: source_ref.clone(), ..refund(1, 1) };
            let Purchase(grant) = purchase(team, 10);
            let grant = Purchase(Grant { source_ref, ..grant });
            let (refunded, granted) = tokio::join!(db.store.credits().claw_back(refund), db.store.credits().grant_purchase(grant));
            refunded.unwrap();
            granted.unwrap();
            assert_eq!(db.credits(team).await, (0, 0), "round {round}");
        }
    }

    async fn dispute_takes_the_remaining_credits_until_it_is_won(db) {
        let team = db.team(0).await;
        grant_purchase(db, team, 10).await;
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        db.pending(team).await;
        let open = || db.store.credits().dispute(dispute("du_1", DisputeState::Open));
        let disputes = join_all((0..4).map(|_| open())).await;
        let taken: u32 = disputes.into_iter().map(|outcome| outcome.unwrap().unwrap().taken).sum();
        assert_eq!((taken, db.credits(team).await), (8, (1, 1)));
        assert_eq!(open().await.unwrap().unwrap().missing, 2);
        assert_eq!(db.store.credits().settle_disputes(NOW, 9).await.unwrap(), 0);
        let won = || db.store.credits().dispute(dispute("du_1", DisputeState::Won));
        assert_eq!(won().await.unwrap().unwrap().restored, 8);
        assert_eq!(won().await.unwrap().unwrap().restored, 0);
        // A late repetition of the first event does not reopen it.
        assert_eq!(open().await.unwrap().unwrap().taken, 0);
        assert_eq!((db.credits(team).await, adjustments(db, team).await), ((9, 1), vec![-8, 8]));
    }

    async fn lost_dispute_keeps_the_credits_also_when_it_is_reported_before_the_payment(db) {
        let team = db.team(0).await;
        assert_eq!(db.store.credits().dispute(dispute("du_1", DisputeState::Lost)).await.unwrap(), None);
        assert_eq!(db.store.credits().dispute(dispute("du_1", DisputeState::Open)).await.unwrap(), None);
        grant_purchase(db, team, 10).await;
        assert_eq!(db.credits(team).await, (0, 0));
        // A decision is final.
        let late = db.store.credits().dispute(dispute("du_1", DisputeState::Won)).await.unwrap().unwrap();
        assert_eq!((late.restored, db.credits(team).await), (0, (0, 0)));
    }

    async fn credit_that_is_released_during_a_dispute_is_taken_back(db) {
        let team = db.team(0).await;
        grant_purchase(db, team, 3).await;
        let leased = db.leased(team).await;
        db.store.credits().dispute(dispute("du_1", DisputeState::Open)).await.unwrap().unwrap();
        assert_eq!(db.credits(team).await, (1, 1));
        db.store.grabs().fail(failing(leased.grab, FailureSource::Lease(leased.token), NOW)).await.unwrap().unwrap();
        assert_eq!(db.credits(team).await, (1, 0));
        assert_eq!(db.store.credits().settle_disputes(NOW, 9).await.unwrap(), 1);
        assert_eq!(db.store.credits().settle_disputes(NOW, 9).await.unwrap(), 0);
        assert_eq!(db.credits(team).await, (0, 0));
        let won = db.store.credits().dispute(dispute("du_1", DisputeState::Won)).await.unwrap().unwrap();
        assert_eq!((won.restored, db.credits(team).await), (3, (3, 0)));
        assert_eq!(db.store.credits().settle_disputes(NOW, 9).await.unwrap(), 0);
    }

    async fn refund_during_a_dispute_is_taken_when_the_dispute_is_won(db) {
        let team = db.team(0).await;
        grant_purchase(db, team, 10).await;
        db.store.credits().dispute(dispute("du_1", DisputeState::Open)).await.unwrap().unwrap();
        assert_eq!(db.store.credits().claw_back(refund(1, 2)).await.unwrap().unwrap().taken, 0);
        let won = db.store.credits().dispute(dispute("du_1", DisputeState::Won)).await.unwrap().unwrap();
        assert_eq!((won.restored, won.taken, db.credits(team).await), (10, 5, (5, 0)));
        // The other of two disputes still takes everything.
        db.store.credits().dispute(dispute("du_2", DisputeState::Open)).await.unwrap().unwrap();
        assert_eq!((db.credits(team).await, adjustments(db, team).await), ((0, 0), vec![-10, 10, -5, -5]));
    }

    async fn reversals_without_a_lot_are_purged(db) {
        let team = db.team(0).await;
        db.store.credits().claw_back(refund(1, 2)).await.unwrap();
        let foreign = Clawback { source_ref: "stripe:pi_foreign".to_owned(), ..refund(1, 1) };
        assert_eq!(db.store.credits().claw_back(foreign).await.unwrap(), None);
        grant_purchase(db, team, 10).await;
        assert_eq!(db.store.credits().purge_reversals(NOW, 10).await.unwrap(), 0);
        assert_eq!(db.store.credits().purge_reversals(NOW + DAY, 10).await.unwrap(), 1);
        // That of the lot is kept: a repeated event takes nothing.
        assert_eq!(db.store.credits().claw_back(refund(1, 2)).await.unwrap().unwrap().taken, 0);
        assert_eq!(db.credits(team).await, (5, 0));
    }

    async fn balance_after_each_entry_is_the_sum_up_to_it(db) {
        let (team, other) = (db.team(3).await, db.team(50).await);
        grant_purchase(db, team, 10).await;
        for done in [true, false, true] {
            ended(db, team, 0, done).await;
        }
        db.store.credits().claw_back(refund(1, 2)).await.unwrap().unwrap();
        let entries = db.store.credits().ledger(team, None, 100).await.unwrap();
        let mut sum = 0;
        for entry in entries.iter().rev() {
            sum += i64::from(entry.amount);
            assert_eq!(db.store.credits().balance_after(team, entry.id).await.unwrap(), sum, "{entry:?}");
        }
        assert_eq!((entries.len(), sum), (5, 6));
        // A credit that is held for an open grab is still there.
        db.pending(team).await;
        assert_eq!(db.store.credits().balance_after(team, i64::MAX).await.unwrap(), 6);
        assert_eq!(db.store.credits().balance_after(team, 0).await.unwrap(), 0);
        assert_eq!(db.store.credits().balance_after(other, i64::MAX).await.unwrap(), 50);
        assert_eq!(db.store.credits().balance_after(TeamId(db.id()), 1).await.unwrap(), 0);
    }

    async fn receipt_is_kept_as_long_as_the_lot_of_its_payment(db) {
        let team = db.team(0).await;
        let receipt = |payment: &str, url: &str| Receipt {
            source_ref: format!("stripe:{payment}"),
            url: url.to_owned(),
            now: NOW,
        };
        db.store.credits().store_receipt(receipt("pi_1", "https://pay.stripe.com/receipts/1")).await.unwrap();
        db.store.credits().store_receipt(receipt("pi_1", "https://pay.stripe.com/receipts/2")).await.unwrap();
        db.store.credits().store_receipt(receipt("pi_foreign", "https://pay.stripe.com/receipts/3")).await.unwrap();
        grant_purchase(db, team, 10).await;
        let all = ["stripe:pi_1", "stripe:pi_foreign", "stripe:pi_2"].map(str::to_owned);
        assert_eq!(db.store.credits().receipts(&all).await.unwrap().len(), 2);
        assert_eq!(db.store.credits().receipts(&[]).await.unwrap().len(), 0);
        assert_eq!(db.store.credits().purge_receipts(NOW, 10).await.unwrap(), 0);
        assert_eq!(db.store.credits().purge_receipts(NOW + DAY, 10).await.unwrap(), 1);
        let left = db.store.credits().receipts(&all).await.unwrap();
        assert_eq!(left.into_iter().collect::<Vec<_>>(), [(all[0].clone(), "https://pay.stripe.com/receipts/2".to_owned())]);
    }

    async fn specs_are_those_of_grabs_of_the_team(db) {
        let (team, other) = (db.team(1).await, db.team(1).await);
        let (own, foreign) = (db.leased(team).await.grab, db.leased(other).await.grab);
        let specs = db.store.grabs().specs(team, &[own, foreign, GrabId(db.id())]).await.unwrap();
        assert_eq!(specs.into_keys().collect::<Vec<_>>(), [own]);
        assert!(db.store.grabs().specs(team, &[]).await.unwrap().is_empty());
    }
}
