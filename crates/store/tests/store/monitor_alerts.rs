//! Alerts of quiet hours, and changed elements.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::monitor::{Change, Compare, ElementChange, FileResult, FileResults, MonitorChange, Quiet};
use grabd_store::monitors::{FinishedRun, MonitorUpdate};

use crate::harness::{NOW, on_both};
use crate::monitors::{End, created, events, find, run, run_with, runs, target, text};
use crate::webhooks::endpoint;

const HOUR: Duration = Duration::from_secs(60 * 60);

on_both! {
    async fn alerts_of_quiet_hours_are_sent_once_when_they_end(db) {
        let team = db.team(9).await;
        let all = endpoint(db, team, &["monitor.changed"]).await;
        let minute = u16::try_from(NOW.as_ms() / 60_000 % 1440).unwrap();
        // From a minute before now on, for four hours.
        let quiet = Quiet::new((minute + 1439) % 1440, (minute + 239) % 1440, "UTC").unwrap();
        let end = quiet.end_after(NOW).unwrap();
        let monitor = created(db, team, |spec| {
            spec.quiet = Some(quiet);
            spec.keep = 1;
        })
        .await;
        assert_eq!(find(db, &monitor).await.spec.quiet, monitor.spec.quiet);
        run(db, &monitor, NOW, End::Done(0)).await;
        assert_eq!(db.store.monitors().last_change(monitor.id).await.unwrap(), None);
        run(db, &monitor, NOW + HOUR, End::Done(5000)).await;
        let last = run(db, &monitor, NOW + HOUR * 2, End::Done(6000)).await;
        assert_eq!((last.run.is_alerted, events(&last)), (true, vec![]));
        // A newer run does not replace that of an alert that waits.
        let same = run(db, &monitor, NOW + HOUR * 3, End::Done(0)).await;
        let kept = async || runs(db, &monitor).await.into_iter().map(|run| run.id).collect::<Vec<_>>();
        assert_eq!(kept().await, [same.run.id, last.run.id]);
        assert_eq!(db.store.monitors().last_change(monitor.id).await.unwrap(), Some(last.run.due_at));
        let deliveries = async || {
            db.store.webhooks().list_deliveries(all.endpoint, None, 9, NOW).await.unwrap().unwrap().deliveries.len()
        };
        assert_eq!(deliveries().await, 0);
        let early = Timestamp::from_ms(end.as_ms() - 1);
        assert_eq!(db.store.monitors().held_alerts(early, 9).await.unwrap(), []);
        assert_eq!(db.store.monitors().held_alerts(end, 9).await.unwrap(), [monitor.id]);
        let sends = (0..4).map(|_| db.store.monitors().send_held(monitor.id, end, text));
        let sent: Vec<FinishedRun> = join_all(sends).await.into_iter().filter_map(Result::unwrap).collect();
        assert_eq!(sent.len(), 1);
        assert_eq!((events(&sent[0]), sent[0].run.id), (vec!["monitor.changed"], last.run.id));
        assert_eq!((deliveries().await, db.store.monitors().held_alerts(end, 9).await.unwrap()), (1, vec![]));
        assert_eq!(kept().await, [same.run.id]);
        // Outside of the quiet hours, alerts are sent at once.
        let loud = run(db, &monitor, NOW + HOUR * 4, End::Done(5000)).await;
        assert_eq!((events(&loud), deliveries().await), (vec!["monitor.changed"], 2));
    }

    async fn alerts_are_sent_at_once_when_the_quiet_hours_are_removed(db) {
        let minute = u16::try_from(NOW.as_ms() / 60_000 % 1440).unwrap();
        let quiet = Quiet::new((minute + 1439) % 1440, (minute + 600) % 1440, "UTC");
        let monitor = created(db, db.team(9).await, |spec| spec.quiet = quiet).await;
        for hours in 0..3 {
            assert_eq!(events(&run(db, &monitor, NOW + HOUR * hours, End::Failed).await), [""; 0]);
        }
        let recovered = run(db, &monitor, NOW + HOUR * 3, End::Done(0)).await;
        let now = NOW + HOUR * 4;
        assert_eq!(db.store.monitors().held_alerts(now, 9).await.unwrap(), []);
        let change = MonitorChange { quiet: Some(None), ..MonitorChange::default() };
        let update = MonitorUpdate { target: target(&monitor), change, secrets: None, kept_limit: 5000, now };
        db.store.monitors().change(update).await.unwrap();
        assert_eq!(db.store.monitors().held_alerts(now, 9).await.unwrap(), [monitor.id]);
        let sent = db.store.monitors().send_held(monitor.id, now, text).await.unwrap().unwrap();
        assert_eq!((events(&sent), sent.run.id), (vec!["monitor.recovered"], recovered.run.id), "the last state");
    }

    async fn changed_elements_are_kept_with_the_run(db) {
        let monitor = created(db, db.team(9).await, |spec| {
            spec.compare = Compare { image: None, elements: true, ..Compare::default() };
        })
        .await;
        assert_eq!(find(db, &monitor).await.spec.compare, monitor.spec.compare);
        run(db, &monitor, NOW, End::Done(0)).await;
        let button = ElementChange::changed("button", "Order", "Buy", "Order");
        let elements = |result| FileResults { elements: Some(result), ..FileResults::default() };
        let changed = elements(FileResult::Compared(vec![button.clone()]));
        let changed = run_with(db, &monitor, NOW + HOUR, End::Done(0), changed).await;
        assert_eq!((&changed.run.changes, events(&changed)), (&vec![Change::Elements], vec!["monitor.changed"]));
        assert_eq!(changed.run.element_changes, [button]);
        assert_eq!(runs(db, &monitor).await[0], changed.run);
        let unread = elements(FileResult::Unread);
        let unread = run_with(db, &monitor, NOW + HOUR * 2, End::Done(0), unread).await;
        assert_eq!(unread.run.error.map(|error| error.code).as_deref(), Some("elements_not_compared"));
        let reported = changed.run.grab.unwrap();
        assert!(db.store.grabs().delete_grab(monitor.team, Environment::Live, reported, NOW + HOUR * 3).await.unwrap());
        assert!(runs(db, &monitor).await.iter().all(|run| run.element_changes.is_empty()));
    }
}
