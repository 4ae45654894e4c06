//! What comes in, what is kept, and what must always come out.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::credits::{Balance, EntryKind, LotKind, Plan};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::{Drift, Error, Grant, Granted};

use crate::harness::{NOW, completion, on_both};

fn grant(team: TeamId, credits: u32) -> Grant {
    Grant { team, kind: LotKind::Prepaid, credits, expires_at: None, source_ref: "order 1".into(), now: NOW }
}

on_both! {
    async fn a_payment_grants_once(world) {
        let team = world.team(0).await;
        let Granted::New(lot) = world.store.grant(grant(team, 100)).await.unwrap() else { panic!("it is new") };
        assert_eq!(world.store.grant(grant(team, 100)).await.unwrap(), Granted::Repeated(lot));
        assert_eq!(world.credits(team).await, (100, 0));
        let entries = world.store.ledger(team, None, 10).await.unwrap();
        assert_eq!(entries.len(), 1);
        let entry = &entries[0];
        assert_eq!((entry.kind, entry.amount, entry.lot), (EntryKind::Grant, 100, lot));
        assert_eq!((entry.reference.as_deref(), entry.at), (Some("order 1"), NOW));
    }

    async fn a_payment_grants_once_however_many_ask_at_once(world) {
        let team = world.team(0).await;
        let granted = join_all((0..16).map(|_| world.store.grant(grant(team, 5)))).await;
        let new = granted.into_iter().filter(|granted| matches!(granted, Ok(Granted::New(_)))).count();
        assert_eq!(new, 1);
        assert_eq!(world.credits(team).await, (5, 0));
    }

    async fn a_reference_does_not_stand_for_two_grants(world) {
        let (team, other) = (world.team(0).await, world.team(0).await);
        world.store.grant(grant(team, 100)).await.unwrap();
        for other in [grant(other, 100), grant(team, 99)] {
            let refused = world.store.grant(other).await;
            assert!(matches!(refused, Err(Error::Inconsistent(_))), "{refused:?}");
        }
        assert_eq!(world.store.lots(other).await.unwrap(), []);
    }

    async fn terms_that_cannot_be_are_refused(world) {
        let team = world.team(0).await;
        let prepaid = grant(team, 1);
        let refused = [
            Grant { credits: 0, ..prepaid.clone() },
            Grant { expires_at: Some(NOW), ..prepaid.clone() },
            Grant { kind: LotKind::Subscription, ..prepaid.clone() },
            Grant { team: TeamId(world.id()), ..prepaid },
        ];
        for grant in refused {
            let refused = world.store.grant(grant).await;
            assert!(matches!(refused, Err(Error::Constraint(_))), "{refused:?}");
        }
        assert_eq!(world.store.lots(team).await.unwrap(), []);
    }

    async fn the_ledger_only_grows(world) {
        world.team(5).await;
        for change in ["UPDATE ledger SET amount = 9", "DELETE FROM ledger"] {
            let refused = world.meddle(change).await.unwrap_err();
            assert!(refused.to_string().contains("append-only"), "{refused}");
        }
    }

    async fn a_grab_is_never_paid_twice(world) {
        let team = world.team(5).await;
        let leased = world.leased(team).await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        let again = format!(
            "INSERT INTO ledger (team_id, lot_id, kind, amount, grab_id, at) \
             SELECT team_id, lot_id, kind, amount, grab_id, at FROM ledger WHERE grab_id = {}",
            world.literal(leased.grab.0)
        );
        let refused = world.meddle(&again).await.unwrap_err();
        assert!(refused.to_string().to_lowercase().contains("unique"), "{refused}");
    }

    async fn the_ledger_is_read_page_by_page(world) {
        let team = world.team(3).await;
        for _ in 0..3 {
            let leased = world.leased(team).await;
            world.store.complete(completion(&leased)).await.unwrap().unwrap();
        }
        let all = world.store.ledger(team, None, 100).await.unwrap();
        assert_eq!(all.iter().map(|entry| entry.amount).collect::<Vec<_>>(), [-1, -1, -1, 3]);
        let first = world.store.ledger(team, None, 3).await.unwrap();
        assert_eq!(first, all[..3]);
        assert_eq!(world.store.ledger(team, Some(first[2].id), 3).await.unwrap(), all[3..]);
        let other = world.team(0).await;
        assert_eq!(world.store.ledger(other, None, 100).await.unwrap(), []);
    }

    async fn what_the_schema_itself_keeps_out_is_looked_for_all_the_same(world) {
        let team = world.team(5).await;
        let leased = world.leased(team).await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        let lot = world.lot(team).await.id;
        let open = world.pending(team).await;
        let sqlite = world.store.kind() == grabd_store::Kind::Sqlite;
        // Each guard is taken away before what it keeps out is done.
        let unchecked = |statement: &str| match sqlite {
            true => format!("PRAGMA ignore_check_constraints = ON; {statement}"),
            false => format!(
                "DO $$ DECLARE c text; BEGIN \
                 FOR c IN SELECT conname FROM pg_constraint WHERE conrelid = 'credit_lot'::regclass AND contype = 'c' \
                 LOOP EXECUTE format('ALTER TABLE credit_lot DROP CONSTRAINT %I', c); END LOOP; END $$; {statement}"
            ),
        };
        world.meddle(&unchecked("UPDATE credit_lot SET held = 6")).await.unwrap();
        assert_eq!(
            world.store.verify_ledger().await.unwrap(),
            [Drift::Bounds { lot, remaining: 4, held: 6 }, Drift::Held { lot, held: 6, jobs: 1 }]
        );
        world.meddle("UPDATE credit_lot SET held = 1").await.unwrap();

        world.meddle(&format!("UPDATE job SET lot_id = {}", lot.0 + 1)).await.unwrap();
        let nowhere = grabd_domain::ids::LotId(lot.0 + 1);
        assert_eq!(
            world.store.verify_ledger().await.unwrap(),
            [Drift::Held { lot, held: 1, jobs: 0 }, Drift::Held { lot: nowhere, held: 0, jobs: 1 }]
        );
        world.meddle(&format!("UPDATE job SET lot_id = {}", lot.0)).await.unwrap();

        let twice = "INSERT INTO ledger (team_id, lot_id, kind, amount, grab_id, at) \
                     SELECT team_id, lot_id, kind, amount, grab_id, at FROM ledger WHERE kind = 2";
        world.meddle("DROP INDEX ledger_one_spend").await.unwrap();
        world.meddle(twice).await.unwrap();
        assert_eq!(
            world.store.verify_ledger().await.unwrap(),
            [
                Drift::Remaining { lot, remaining: 4, ledger: 3 },
                Drift::Balance { team, remaining: 4, ledger: 3 },
                Drift::PaidTwice(leased.grab),
            ]
        );
        let guards: &[&str] = match sqlite {
            true => &["DROP TRIGGER ledger_no_delete", "DELETE FROM ledger WHERE id = (SELECT MAX(id) FROM ledger)"],
            false => &[
                "ALTER TABLE ledger DISABLE TRIGGER ledger_append_only",
                "DELETE FROM ledger WHERE id = (SELECT MAX(id) FROM ledger)",
            ],
        };
        for statement in guards {
            world.meddle(statement).await.unwrap();
        }
        assert_eq!(world.store.verify_ledger().await.unwrap(), [Drift::Unguarded]);
        let guard = match sqlite {
            true => "CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END",
            false => "ALTER TABLE ledger ENABLE TRIGGER ledger_append_only",
        };
        world.meddle(guard).await.unwrap();
        assert_eq!(world.grab(team, open).await.attempts, 0);
    }

    async fn a_cancelled_subscription_keeps_its_credits_until_its_term_ends(world) {
        let (team, other) = (world.team(5).await, world.team(0).await);
        let ends = NOW + Duration::from_secs(100);
        world.grant(team, LotKind::Subscription, 3, Some(ends)).await;
        world.grant(team, LotKind::Subscription, 3, Some(NOW)).await;
        world.grant(other, LotKind::Subscription, 3, Some(ends)).await;
        assert_eq!(world.store.cancel_subscriptions(team, NOW).await.unwrap(), 1);
        assert_eq!(world.store.cancel_subscriptions(team, NOW).await.unwrap(), 0);
        let lots = world.store.lots(team).await.unwrap();
        assert_eq!(lots.iter().map(|lot| lot.cancelled).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!((Plan::of(&lots, NOW).status, Balance::of(&lots, NOW).subscription), ("cancelled", 3));
        let theirs = world.store.lots(other).await.unwrap();
        assert_eq!(Plan::of(&theirs, NOW).status, "active");
        // Spent before the prepaid ones, like any other.
        let leased = world.leased(team).await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(world.store.lots(team).await.unwrap()[1].remaining, 2);
        assert_eq!(world.store.expire_lots(ends - Duration::from_millis(1), 9).await.unwrap(), 1);
        assert_eq!(world.store.lots(team).await.unwrap()[1].remaining, 2);
        assert_eq!(world.store.expire_lots(ends, 9).await.unwrap(), 2);
        assert_eq!(world.store.lots(team).await.unwrap()[1].remaining, 0);
    }

    async fn whatever_does_not_come_out_is_found(world) {
        let team = world.team(5).await;
        let leased = world.leased(team).await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        let open = world.pending(team).await;
        let lot = world.lot(team).await.id;
        let paid = leased.grab;
        let is = |id: GrabId| world.literal(id.0);
        // Each way to break it, what is found then, and the way back.
        let breaks = [
            (
                "UPDATE credit_lot SET remaining = remaining + 1".to_owned(),
                vec![
                    Drift::Remaining { lot, remaining: 5, ledger: 4 },
                    Drift::Balance { team, remaining: 5, ledger: 4 },
                ],
                "UPDATE credit_lot SET remaining = remaining - 1".to_owned(),
            ),
            (
                "UPDATE credit_lot SET held = 0".to_owned(),
                vec![Drift::Held { lot, held: 0, jobs: 1 }],
                "UPDATE credit_lot SET held = 1".to_owned(),
            ),
            (
                format!("UPDATE grab SET env = 1 WHERE id = {}", is(paid)),
                vec![Drift::PaidForNothing(paid)],
                format!("UPDATE grab SET env = 0 WHERE id = {}", is(paid)),
            ),
            (
                format!("UPDATE grab SET status = 3, error_code = 'x', finished_at = 1 WHERE id = {}", is(open)),
                vec![Drift::Leftover(open)],
                format!(
                    "UPDATE grab SET status = 0, error_code = NULL, finished_at = NULL WHERE id = {}",
                    is(open)
                ),
            ),
        ];
        for (broken, drifts, mended) in breaks {
            world.meddle(&broken).await.unwrap();
            assert_eq!(world.store.verify_ledger().await.unwrap(), drifts);
            world.meddle(&mended).await.unwrap();
            assert_eq!(world.store.verify_ledger().await.unwrap(), []);
        }
        let test = world.store.ledger(team, None, 1).await.unwrap();
        assert_eq!(test[0].grab, Some(paid));
        // Two at once: a done grab nobody paid for, whose job is still there.
        let done = format!(
            "UPDATE grab SET status = 2, image_key = 'x', finished_at = 1 WHERE id = {}",
            is(open)
        );
        world.meddle(&done).await.unwrap();
        assert_eq!(world.store.verify_ledger().await.unwrap(), [Drift::Unpaid(open), Drift::Leftover(open)]);
        let undone = format!("UPDATE grab SET status = 0, image_key = NULL, finished_at = NULL WHERE id = {}", is(open));
        world.meddle(&undone).await.unwrap();
        let jobs = format!("UPDATE job SET grab_id = {}", is(paid));
        world.meddle(&jobs).await.unwrap();
        assert_eq!(world.store.verify_ledger().await.unwrap(), [Drift::Orphaned(open), Drift::Leftover(paid)]);
        world.meddle(&format!("UPDATE job SET grab_id = {}", is(open))).await.unwrap();
        assert!(world.store.expire_jobs(NOW + Duration::from_secs(99), 9).await.unwrap().len() == 1);
    }
}
