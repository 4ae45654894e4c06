//! Monitors that are created together: all or none.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::{GrantId, MonitorId, TeamId};
use grabd_domain::monitor::{Monitor, Phase};
use grabd_store::Actor;
use grabd_store::monitors::{Claimed, CreateMonitorOutcome, NewMonitor};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, TestDb, on_both};
use crate::monitors::{created, find, new_monitor, spec};

const HOUR: Duration = Duration::from_secs(60 * 60);
const LEASE: Duration = Duration::from_secs(30);

/// Monitors whose delays are in this part of the longest one, in thousandths.
fn new_monitors(db: &TestDb, team: TeamId, phases: &[u16]) -> Vec<NewMonitor> {
    let new = |phase: &u16| {
        let name = format!("Page {phase}");
        let new = new_monitor(MonitorId(db.id()), team, spec(|spec| spec.name = name));
        NewMonitor { phase: Phase(*phase), ..new }
    };
    phases.iter().map(new).collect()
}

async fn listed(db: &TestDb, team: TeamId) -> Vec<Monitor> {
    db.store.monitors().list(team, Environment::Live, None, None, 99).await.unwrap().monitors
}

on_both! {
    async fn monitors_are_created_in_their_order_and_begin_one_after_the_other(db) {
        let team = db.team(9).await;
        let store = db.store.acting_as(Actor { name: "user:1".to_owned(), address: None, now: NOW });
        let outcome = store.monitors().create_all(new_monitors(db, team, &[0, 500, 1000])).await.unwrap();
        let CreateMonitorOutcome::Created(all) = outcome else { panic!("{outcome:?}") };
        let due: Vec<_> = all.iter().map(|monitor| monitor.next_run_at).collect();
        let after = |seconds| Some(NOW + Duration::from_secs(seconds));
        assert_eq!(due, [after(0), after(150), after(300)], "a tenth of the interval, and at most five minutes");
        let names: Vec<&str> = all.iter().map(|monitor| monitor.spec.name.as_str()).collect();
        assert_eq!(names, ["Page 0", "Page 500", "Page 1000"]);
        let mut newest_first = all.clone();
        newest_first.reverse();
        assert_eq!(listed(db, team).await, newest_first);

        // Each has an entry of its own in the audit trail.
        let trail = db.store.audit().list_audit(Timestamp::from_ms(0), None, 99).await.unwrap();
        let recorded = trail.iter().filter(|entry| entry.action == "monitor.create" && entry.team == Some(team));
        assert_eq!(recorded.count(), 3);

        // The delay of the first run is that of the later ones: it does not grow.
        for monitor in &all {
            let due = monitor.next_run_at.unwrap();
            let claimed = db.store.monitors().claim(monitor.id, due, due + LEASE).await.unwrap();
            assert!(matches!(claimed, Some(Claimed::Run(_))), "{claimed:?}");
            assert_eq!(find(db, monitor).await.next_run_at, Some(due + HOUR));
        }
    }

    async fn limits_of_the_team_are_for_all_of_them_together(db) {
        let (team, other) = (db.team(9).await, db.team(9).await);
        let existing = created(db, team, |_| ()).await;
        let with = |limit: u64, kept_limit: u64| {
            let all = new_monitors(db, team, &[0, 1, 2]).into_iter();
            all.map(move |new| NewMonitor { limit, kept_limit, ..new }).collect::<Vec<_>>()
        };
        let create = async |new: Vec<NewMonitor>| db.store.monitors().create_all(new).await.unwrap();
        assert_eq!(create(with(3, 5000)).await, CreateMonitorOutcome::TooMany);
        // Each keeps 100 runs.
        assert_eq!(create(with(4, 399)).await, CreateMonitorOutcome::TooManyRuns { left: 299 });
        let of_app = with(4, 400).into_iter();
        let of_app = of_app.map(|new| NewMonitor { creator: Principal::Grant(GrantId(db.id())), ..new }).collect();
        assert_eq!(create(of_app).await, CreateMonitorOutcome::AccessEnded);
        assert_eq!(listed(db, team).await, [existing], "none was created");
        assert!(matches!(create(with(4, 400)).await, CreateMonitorOutcome::Created(all) if all.len() == 3));
        assert_eq!(create(with(4, 5000)).await, CreateMonitorOutcome::TooMany);
        assert_eq!((listed(db, team).await.len(), listed(db, other).await.len()), (4, 0));
        db.store.accounts().suspend_team(other, "A reason", NOW).await.unwrap();
        let suspended = create(new_monitors(db, other, &[0])).await;
        assert_eq!(suspended, CreateMonitorOutcome::TeamInactive);
    }

    async fn concurrent_creates_reach_the_limit_of_the_team_exactly(db) {
        let team = db.team(9).await;
        let creates: Vec<_> = (0..6)
            .map(|_| {
                let store = db.store.clone();
                let new = new_monitors(db, team, &[0, 1, 2]).into_iter();
                let new: Vec<NewMonitor> = new.map(|new| NewMonitor { limit: 7, ..new }).collect();
                TaskTracker::new().spawn(async move { store.monitors().create_all(new).await.unwrap() })
            })
            .collect();
        let (mut created, mut refused) = (0, 0);
        for outcome in join_all(creates).await {
            let outcome = outcome.unwrap();
            if let CreateMonitorOutcome::Created(all) = &outcome {
                created += all.len();
            } else {
                assert_eq!(outcome, CreateMonitorOutcome::TooMany);
                refused += 1;
            }
        }
        assert_eq!((created, refused, listed(db, team).await.len()), (6, 4, 6));
    }

    async fn monitors_that_fail_half_way_are_not_created(db) {
        let team = db.team(9).await;
        let mut new = new_monitors(db, team, &[0, 1]);
        new[1].id = new[0].id;
        assert!(db.store.monitors().create_all(new).await.is_err(), "two have the same id");
        assert_eq!(listed(db, team).await, []);
        let none: CreateMonitorOutcome<Vec<Monitor>> = CreateMonitorOutcome::Created(Vec::new());
        assert_eq!(db.store.monitors().create_all(Vec::new()).await.unwrap(), none);
    }
}
