//! Grants, the ledger, and the consistency checks.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::credits::{Balance, EntryKind, LotKind, Plan};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::Error;
use grabd_store::credits::{Drift, Grant, GrantOutcome};

use crate::harness::{NOW, completion, on_both};

fn grant(team: TeamId, credits: u32) -> Grant {
    Grant { team, kind: LotKind::Prepaid, credits, expires_at: None, source_ref: "order 1".into(), now: NOW }
}

on_both! {
    async fn grant_is_idempotent_per_reference(db) {
        let team = db.team(0).await;
        let GrantOutcome::New(lot) = db.store.credits().grant(grant(team, 100)).await.unwrap() else {
            panic!("expected a new lot")
        };
        assert_eq!(db.store.credits().grant(grant(team, 100)).await.unwrap(), GrantOutcome::Repeated(lot));
        assert_eq!(db.credits(team).await, (100, 0));
        let entries = db.store.credits().ledger(team, None, 10).await.unwrap();
        assert_eq!(entries.len(), 1);
        let entry = &entries[0];
        assert_eq!((entry.kind, entry.amount, entry.lot), (EntryKind::Grant, 100, lot));
        assert_eq!((entry.reference.as_deref(), entry.at), (Some("order 1"), NOW));
    }

    async fn concurrent_grants_with_one_reference_create_one_lot(db) {
        let team = db.team(0).await;
        let granted = join_all((0..16).map(|_| db.store.credits().grant(grant(team, 5)))).await;
        let new = granted.into_iter().filter(|granted| matches!(granted, Ok(GrantOutcome::New(_)))).count();
        assert_eq!(new, 1);
        assert_eq!(db.credits(team).await, (5, 0));
    }

    async fn grant_with_a_used_reference_and_other_terms_is_rejected(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        db.store.credits().grant(grant(team, 100)).await.unwrap();
        for other in [grant(other, 100), grant(team, 99)] {
            let refused = db.store.credits().grant(other).await;
            assert!(matches!(refused, Err(Error::Inconsistent(_))), "{refused:?}");
        }
        assert_eq!(db.store.credits().lots(other).await.unwrap(), []);
    }

    async fn grant_with_invalid_terms_is_rejected(db) {
        let team = db.team(0).await;
        let prepaid = grant(team, 1);
        let refused = [
            Grant { credits: 0, ..prepaid.clone() },
            Grant { expires_at: Some(NOW), ..prepaid.clone() },
            Grant { kind: LotKind::Subscription, ..prepaid.clone() },
            Grant { team: TeamId(db.id()), ..prepaid },
        ];
        for grant in refused {
            let refused = db.store.credits().grant(grant).await;
            assert!(matches!(refused, Err(Error::Constraint(_))), "{refused:?}");
        }
        assert_eq!(db.store.credits().lots(team).await.unwrap(), []);
    }

    async fn ledger_entries_cannot_be_updated_or_deleted(db) {
        db.team(5).await;
        for change in ["UPDATE ledger SET amount = 9", "DELETE FROM ledger"] {
            let refused = db.execute_raw(change).await.unwrap_err();
            assert!(refused.to_string().contains("append-only"), "{refused}");
        }
    }

    async fn second_spend_for_a_grab_violates_the_unique_index(db) {
        let team = db.team(5).await;
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        let again = format!(
            "INSERT INTO ledger (team_id, lot_id, kind, amount, grab_id, at) \
             SELECT team_id, lot_id, kind, amount, grab_id, at FROM ledger WHERE grab_id = {}",
            db.literal(leased.grab.0)
        );
        let refused = db.execute_raw(&again).await.unwrap_err();
        assert!(refused.to_string().to_lowercase().contains("unique"), "{refused}");
    }

    async fn ledger_is_paginated(db) {
        let team = db.team(3).await;
        for _ in 0..3 {
            let leased = db.leased(team).await;
            db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        }
        let all = db.store.credits().ledger(team, None, 100).await.unwrap();
        assert_eq!(all.iter().map(|entry| entry.amount).collect::<Vec<_>>(), [-1, -1, -1, 3]);
        let first = db.store.credits().ledger(team, None, 3).await.unwrap();
        assert_eq!(first, all[..3]);
        assert_eq!(db.store.credits().ledger(team, Some(first[2].id), 3).await.unwrap(), all[3..]);
        let other = db.team(0).await;
        assert_eq!(db.store.credits().ledger(other, None, 100).await.unwrap(), []);
    }

    async fn verify_ledger_detects_violations_that_the_schema_prevents(db) {
        let team = db.team(5).await;
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        let lot = db.lot(team).await.id;
        let open = db.pending(team).await;
        let sqlite = db.store.kind() == grabd_store::Kind::Sqlite;
        // Each constraint is removed before it is violated.
        let unchecked = |statement: &str| match sqlite {
            true => format!("PRAGMA ignore_check_constraints = ON; {statement}"),
            false => format!(
                "DO $$ DECLARE c text; BEGIN \
                 FOR c IN SELECT conname FROM pg_constraint WHERE conrelid = 'credit_lot'::regclass AND contype = 'c' \
                 LOOP EXECUTE format('ALTER TABLE credit_lot DROP CONSTRAINT %I', c); END LOOP; END $$; {statement}"
            ),
        };
        db.execute_raw(&unchecked("UPDATE credit_lot SET held = 6")).await.unwrap();
        assert_eq!(
            db.store.credits().verify_ledger().await.unwrap(),
            [Drift::Bounds { lot, remaining: 4, held: 6 }, Drift::Held { lot, held: 6, jobs: 1 }]
        );
        db.execute_raw("UPDATE credit_lot SET held = 1").await.unwrap();

        db.execute_raw(&format!("UPDATE job SET lot_id = {}", lot.0 + 1)).await.unwrap();
        let nowhere = grabd_domain::ids::LotId(lot.0 + 1);
        assert_eq!(
            db.store.credits().verify_ledger().await.unwrap(),
            [Drift::Held { lot, held: 1, jobs: 0 }, Drift::Held { lot: nowhere, held: 0, jobs: 1 }]
        );
        db.execute_raw(&format!("UPDATE job SET lot_id = {}", lot.0)).await.unwrap();

        let twice = "INSERT INTO ledger (team_id, lot_id, kind, amount, grab_id, at) \
                     SELECT team_id, lot_id, kind, amount, grab_id, at FROM ledger WHERE kind = 2";
        db.execute_raw("DROP INDEX ledger_one_spend").await.unwrap();
        db.execute_raw(twice).await.unwrap();
        assert_eq!(
            db.store.credits().verify_ledger().await.unwrap(),
            [
                Drift::Remaining { lot, remaining: 4, ledger: 3 },
                Drift::Balance { team, remaining: 4, ledger: 3 },
                Drift::SpentTwice(leased.grab),
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
            db.execute_raw(statement).await.unwrap();
        }
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), [Drift::AppendOnlyDisabled]);
        let guard = match sqlite {
            true => "CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END",
            false => "ALTER TABLE ledger ENABLE TRIGGER ledger_append_only",
        };
        db.execute_raw(guard).await.unwrap();
        assert_eq!(db.grab(team, open).await.attempts, 0);
    }

    async fn cancelled_subscription_keeps_its_credits_until_its_term_ends(db) {
        let (team, other) = (db.team(5).await, db.team(0).await);
        let ends = NOW + Duration::from_secs(100);
        db.grant(team, LotKind::Subscription, 3, Some(ends)).await;
        db.grant(team, LotKind::Subscription, 3, Some(NOW)).await;
        db.grant(other, LotKind::Subscription, 3, Some(ends)).await;
        assert_eq!(db.store.credits().cancel_subscriptions(team, NOW).await.unwrap(), 1);
        assert_eq!(db.store.credits().cancel_subscriptions(team, NOW).await.unwrap(), 0);
        let lots = db.store.credits().lots(team).await.unwrap();
        assert_eq!(lots.iter().map(|lot| lot.cancelled).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!((Plan::of(&lots, NOW).status, Balance::of(&lots, NOW).subscription), ("cancelled", 3));
        let theirs = db.store.credits().lots(other).await.unwrap();
        assert_eq!(Plan::of(&theirs, NOW).status, "active");
        // Spent before prepaid credits, like any other subscription.
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        assert_eq!(db.store.credits().lots(team).await.unwrap()[1].remaining, 2);
        assert_eq!(db.store.credits().expire_lots(ends - Duration::from_millis(1), 9).await.unwrap(), 1);
        assert_eq!(db.store.credits().lots(team).await.unwrap()[1].remaining, 2);
        assert_eq!(db.store.credits().expire_lots(ends, 9).await.unwrap(), 2);
        assert_eq!(db.store.credits().lots(team).await.unwrap()[1].remaining, 0);
    }

    async fn verify_ledger_detects_each_violation(db) {
        let team = db.team(5).await;
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        let open = db.pending(team).await;
        let lot = db.lot(team).await.id;
        let paid = leased.grab;
        let is = |id: GrabId| db.literal(id.0);
        // A statement that breaks an invariant, the expected findings, and a statement that repairs it.
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
                vec![
                    Drift::StoredBytes { team, recorded: 48_213, images: 0 },
                    // A charged row counts seven times, one of a test key once.
                    Drift::RowBytes { team, recorded: 7 * 2211, rows: 2211 },
                    Drift::SpentWithoutImage(paid),
                ],
                format!("UPDATE grab SET env = 0 WHERE id = {}", is(paid)),
            ),
            (
                format!("UPDATE grab SET status = 3, error_code = 'x', finished_at = 1 WHERE id = {}", is(open)),
                vec![Drift::StaleJob(open)],
                format!("UPDATE grab SET status = 0, error_code = NULL, finished_at = NULL WHERE id = {}", is(open)),
            ),
        ];
        for (broken, drifts, mended) in breaks {
            db.execute_raw(&broken).await.unwrap();
            assert_eq!(db.store.credits().verify_ledger().await.unwrap(), drifts);
            db.execute_raw(&mended).await.unwrap();
            assert_eq!(db.store.credits().verify_ledger().await.unwrap(), []);
        }
        let test = db.store.credits().ledger(team, None, 1).await.unwrap();
        assert_eq!(test[0].grab, Some(paid));
        // Two findings at once: a done grab without a spent credit whose job still exists.
        let done = format!("UPDATE grab SET status = 2, image_key = 'x', finished_at = 1 WHERE id = {}", is(open));
        db.execute_raw(&done).await.unwrap();
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), [Drift::NotSpent(open), Drift::StaleJob(open)]);
        let undone =
            format!("UPDATE grab SET status = 0, image_key = NULL, finished_at = NULL WHERE id = {}", is(open));
        db.execute_raw(&undone).await.unwrap();
        let jobs = format!("UPDATE job SET grab_id = {}", is(paid));
        db.execute_raw(&jobs).await.unwrap();
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), [Drift::JobMissing(open), Drift::StaleJob(paid)]);
        db.execute_raw(&format!("UPDATE job SET grab_id = {}", is(open))).await.unwrap();
        assert!(db.store.grabs().expire_jobs(NOW + Duration::from_secs(99), 9).await.unwrap().len() == 1);
    }
}
