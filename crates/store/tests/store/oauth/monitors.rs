//! Monitors of apps: they make no runs while the app has no access, and end with the grant.

use std::time::Duration;

use grabd_domain::credentials::Principal;
use grabd_domain::ids::MonitorId;
use grabd_store::monitors::{Claimed, CreateMonitorOutcome, MonitorRef, NewMonitor};

use super::test_app::TestApp;
use crate::harness::{NOW, on_both};
use crate::monitors::{new_monitor, spec};

const HOUR: Duration = Duration::from_secs(60 * 60);
const LEASE: Duration = Duration::from_secs(30);

on_both! {
    async fn app_without_access_makes_no_runs_before_its_grant_is_purged(db) {
        let app = TestApp::new(db).await;
        let grant = app.connect(1).await;
        let of_key = new_monitor(MonitorId(db.id()), app.team, spec(|_| ()));
        let new = NewMonitor { creator: Principal::Grant(grant), ..of_key };
        let target = MonitorRef { team: app.team, environment: new.environment, grant: Some(grant), monitor: new.id };
        let monitors = db.store.monitors();
        assert!(matches!(monitors.create(new).await.unwrap(), CreateMonitorOutcome::Created(_)));

        assert!(db.store.accounts().suspend_user(app.user, "spam", NOW).await.unwrap());
        assert_eq!(monitors.claim(target.monitor, NOW, NOW + LEASE).await.unwrap(), Some(Claimed::NoAccess));
        let found = monitors.find(target).await.unwrap().unwrap();
        assert_eq!((found.next_run_at, found.last_run), (Some(NOW + HOUR), None));

        assert!(db.store.accounts().restore_user(app.user, NOW).await.unwrap());
        let later = NOW + HOUR;
        let claimed = monitors.claim(target.monitor, later, later + LEASE).await.unwrap();
        assert!(matches!(claimed, Some(Claimed::Run(_))), "{claimed:?}");

        db.execute_raw(&format!("UPDATE oauth_grant SET expires_at = {}", NOW.as_ms())).await.unwrap();
        let expired = later + HOUR;
        let claimed = monitors.claim(target.monitor, expired, expired + LEASE).await.unwrap();
        assert_eq!(claimed, Some(Claimed::NoAccess));
        assert!(db.store.oauth().end_grant(app.user, grant).await.unwrap());
        assert_eq!(monitors.find(target).await.unwrap(), None);
    }
}
