//! Monitors of apps: they make no runs while the app has no access, and end with the grant. Apps get no alerts of others.

use std::time::Duration;

use grabd_domain::credentials::Principal;
use grabd_domain::ids::MonitorId;
use grabd_domain::monitor::RunError;
use grabd_domain::webhooks::{Creator, Event};
use grabd_store::monitors::{Claimed, CreateMonitorOutcome, MonitorRef, NewMonitor, RunResult};
use grabd_store::webhooks::EndpointRef;

use super::test_app::TestApp;
use super::webhooks::{connect, endpoint};
use crate::harness::{NOW, TestDb, on_both};
use crate::monitors::{new_monitor, spec, text};

const HOUR: Duration = Duration::from_secs(60 * 60);
const LEASE: Duration = Duration::from_secs(30);

/// The events of which messages were enqueued for an endpoint.
async fn events(db: &TestDb, endpoint: EndpointRef) -> Vec<Event> {
    let page = db.store.webhooks().list_deliveries(endpoint.endpoint, None, 9, NOW).await.unwrap().unwrap();
    page.deliveries.iter().map(|delivery| delivery.event).collect()
}

on_both! {
    async fn app_gets_the_alerts_of_its_own_monitors_only(db) {
        let app = TestApp::new(db).await;
        let grant = connect(&app, 1).await;
        let (of_app, own) = (endpoint(&app, Creator::App(grant)).await, endpoint(&app, Creator::Key).await);
        let new = || new_monitor(MonitorId(db.id()), app.team, spec(|_| ()));
        let by_app = NewMonitor { creator: Principal::Grant(grant), ..new() };
        let monitors = db.store.monitors();
        let mut number = Vec::new();
        for new in [new(), by_app] {
            let monitor = new.id;
            assert!(matches!(monitors.create(new).await.unwrap(), CreateMonitorOutcome::Created(_)));
            for hours in 0..3 {
                let now = NOW + HOUR * hours;
                let run = match monitors.claim(monitor, now, now + LEASE).await.unwrap() {
                    Some(Claimed::Run(start)) => start.run,
                    other => panic!("{other:?}"),
                };
                let failed = RunResult::Failed(RunError::new("bad_request", &"It was refused."));
                assert!(monitors.finish_run(run, failed, now, text).await.unwrap().is_some());
            }
            number.push((events(db, own).await.len(), events(db, of_app).await.len()));
        }
        assert_eq!(number, [(1, 0), (2, 1)]);
        assert_eq!(events(db, of_app).await, [Event::MonitorFailed]);
    }

    async fn app_without_access_makes_no_runs_before_its_grant_is_purged(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(1).await;
        let of_key = new_monitor(MonitorId(db.id()), app.team, spec(|_| ()));
        let new = NewMonitor { creator: Principal::Grant(grant), ..of_key };
        let target = MonitorRef { team: app.team, environment: new.environment, grant: Some(grant), monitor: new.id };
        let monitors = db.store.monitors();
        assert!(matches!(monitors.create(new).await.unwrap(), CreateMonitorOutcome::Created(_)));
        assert!(monitors.set_feed(target, Some([7; 32])).await.unwrap());
        let has_feed = async |now| monitors.find_by_feed([7; 32], now).await.unwrap().is_some();
        assert!(has_feed(NOW).await);

        assert!(db.store.accounts().suspend_user(app.user, "spam", NOW).await.unwrap());
        assert!(!has_feed(NOW).await, "the feed of an app has the access of the app");
        assert_eq!(monitors.claim(target.monitor, NOW, NOW + LEASE).await.unwrap(), Some(Claimed::NoAccess));
        let found = monitors.find(target).await.unwrap().unwrap();
        assert_eq!((found.next_run_at, found.last_run), (Some(NOW + HOUR), None));

        assert!(db.store.accounts().restore_user(app.user, NOW).await.unwrap());
        let later = NOW + HOUR;
        assert!(has_feed(later).await);
        let claimed = monitors.claim(target.monitor, later, later + LEASE).await.unwrap();
        assert!(matches!(claimed, Some(Claimed::Run(_))), "{claimed:?}");

        db.execute_raw(&format!("UPDATE oauth_grant SET expires_at = {}", NOW.as_ms())).await.unwrap();
        let expired = later + HOUR;
        let claimed = monitors.claim(target.monitor, expired, expired + LEASE).await.unwrap();
        assert_eq!(claimed, Some(Claimed::NoAccess));
        assert!(!has_feed(expired).await);
        assert!(db.store.oauth().end_grant(app.user, grant).await.unwrap());
        assert_eq!(monitors.find(target).await.unwrap(), None);
    }
}
