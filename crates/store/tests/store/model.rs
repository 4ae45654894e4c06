//! Property test: after random commands and clock jumps, credits, holds, the ledger and idempotency keys match a simple
//! reference model.

mod commands;
mod reference;

use std::sync::atomic::{AtomicU64, Ordering};

use grabd_domain::credits::{Balance, EntryKind, Lot};
use grabd_domain::idempotency::LIFE;
use grabd_domain::ids::TeamId;
use grabd_store::Store;
use grabd_store::accounts::NewTeam;
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::harness::{NOW, TestDb};
use commands::Command;
use reference::Model;

/// Maximum commands per case.
const STEPS: usize = 80;
/// More rows than a case ever has.
const MAX_ROWS: u32 = 10_000;

/// Generates unique ids that sort in order of generation.
#[derive(Default)]
struct Ids(AtomicU64);

impl Ids {
    fn next(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1) << 64 | 7)
    }
}

fn run(runtime: &Runtime, cases: u32, case: impl Fn(Vec<Command>)) {
    let _within = runtime.enter();
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    TestRunner::new(config)
        .run(&vec(commands::any(), 1..=STEPS), |commands| {
            case(commands);
            Ok(())
        })
        .unwrap();
}

#[test]
fn credits_match_the_model_on_sqlite() {
    let runtime = Runtime::new().unwrap();
    let ids = Ids::default();
    run(&runtime, 100, |commands| {
        runtime.block_on(async {
            let store = Store::open("sqlite::memory:").await.unwrap();
            store.migrate().await.unwrap();
            case(&store, &ids, &commands).await;
            store.close().await;
        });
    });
}

#[test]
fn credits_match_the_model_on_postgres() {
    let runtime = Runtime::new().unwrap();
    let ids = Ids::default();
    let db = runtime.block_on(TestDb::postgres());
    // All cases share a database: each creates its own teams and leaves no open grab.
    run(&runtime, 20, |commands| runtime.block_on(case(&db.store, &ids, &commands)));
    runtime.block_on(db.finish());
}

async fn case(store: &Store, ids: &Ids, commands: &[Command]) {
    // Clean up after a failed case on a shared database, when proptest shrinks.
    let over = NOW + LIFE * 400;
    store.grabs().expire_jobs(over, MAX_ROWS).await.unwrap();
    store.credits().expire_lots(over, MAX_ROWS).await.unwrap();
    store.grabs().purge_keys(over, MAX_ROWS).await.unwrap();
    let teams = [TeamId(ids.next()), TeamId(ids.next())];
    for id in teams {
        store.accounts().create_team(NewTeam { id, name: "A team".into(), now: NOW }).await.unwrap();
    }
    let mut model = Model::new(teams);
    for command in commands {
        model.step(store, ids, command).await;
        check(store, &model).await;
    }
    model.end(store).await;
    check(store, &model).await;
    assert!(model.grabs.iter().all(|grab| !grab.is_open()));
}

/// Checks that everything visible of the teams' credits matches the model.
async fn check(store: &Store, model: &Model) {
    for team in model.teams {
        let lots = store.credits().lots(team).await.unwrap();
        let expected: Vec<Lot> = model.lots_of(team).map(|lot| lot.lot).collect();
        assert_eq!(lots, expected, "lots in spending order");
        for lot in &lots {
            let open = model.grabs.iter().filter(|grab| grab.lot == lot.id && grab.is_open()).count();
            assert_eq!(usize::try_from(lot.held).unwrap(), open, "one held credit for each open grab");
        }
        let balance = Balance::of(&lots, model.now);
        assert_eq!(balance.total(), model.spendable(team));

        let entries = store.credits().ledger(team, None, MAX_ROWS).await.unwrap();
        for lot in &lots {
            let sum: i64 =
                entries.iter().filter(|entry| entry.lot == lot.id).map(|entry| i64::from(entry.amount)).sum();
            assert_eq!(sum, i64::from(lot.remaining), "a lot's remaining credits are the sum of its entries");
        }
        let mut paid: Vec<_> =
            entries.iter().filter_map(|entry| Some((entry.grab?, entry.lot, entry.amount))).collect();
        let mut done: Vec<_> = model
            .grabs
            .iter()
            .filter(|grab| grab.team == team && grab.is_done())
            .map(|grab| (grab.id, grab.lot, -1))
            .collect();
        paid.sort_unstable();
        done.sort_unstable();
        assert_eq!(paid, done, "one spend per done grab, from the lot of the held credit");
        let granted: i64 =
            entries.iter().filter(|entry| entry.kind == EntryKind::Grant).map(|entry| i64::from(entry.amount)).sum();
        assert_eq!(granted, lots.iter().map(|lot| i64::from(lot.granted)).sum::<i64>());
    }
    assert_eq!(store.credits().verify_ledger().await.unwrap(), []);
}
