//! Deletion of images.

use std::time::Duration;

use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::grabs::State;
use grabd_domain::ids::GrabId;
use grabd_store::grabs::FailureSource;

use crate::harness::{NOW, completion, failing, on_both};

on_both! {
    async fn delete_schedules_the_image_and_keeps_the_spent_credit(db) {
        let team = db.team(1).await;
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        let before = db.grab(team, leased.grab).await;
        let later = NOW + Duration::from_secs(5);
        assert!(db.store.grabs().delete_grab(team, Live, leased.grab, NOW).await.unwrap());
        assert!(db.store.grabs().delete_grab(team, Live, leased.grab, later).await.unwrap());
        let grab = db.grab(team, leased.grab).await;
        assert_eq!(grab.deleted_at, Some(NOW));
        assert!(matches!(grab.state, State::Done { image: None, .. }));
        assert!(grab.revision() > before.revision());
        assert_eq!(db.store.grabs().due_images(NOW, 9).await.unwrap(), [leased.upload_key]);
        assert_eq!(db.credits(team).await, (0, 0));
    }

    async fn delete_of_an_open_grab_deletes_its_image_on_completion(db) {
        let team = db.team(1).await;
        let leased = db.leased(team).await;
        assert!(db.store.grabs().delete_grab(team, Live, leased.grab, NOW).await.unwrap());
        assert_eq!(db.grab(team, leased.grab).await.state, State::Processing);
        let done = completion(&leased);
        let now = done.now;
        let ended = db.store.grabs().complete(done).await.unwrap().unwrap();
        assert!(matches!(ended.grab.state, State::Done { image: None, .. }));
        assert_eq!(db.store.grabs().due_images(now, 9).await.unwrap(), [leased.upload_key]);
        assert_eq!(db.credits(team).await, (0, 0));
    }

    async fn delete_of_a_failed_grab_sets_deleted_at(db) {
        let team = db.team(1).await;
        let id = db.pending(team).await;
        db.store.grabs().fail(failing(id, FailureSource::Cancel, NOW)).await.unwrap().unwrap();
        assert!(db.store.grabs().delete_grab(team, Live, id, NOW).await.unwrap());
        assert_eq!(db.grab(team, id).await.deleted_at, Some(NOW));
        assert_eq!(db.store.grabs().due_images(NOW, 9).await.unwrap(), []);
    }

    async fn delete_rejects_grabs_of_other_callers(db) {
        let (team, other) = (db.team(1).await, db.team(1).await);
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        let before = db.grab(team, leased.grab).await;
        assert!(!db.store.grabs().delete_grab(other, Live, leased.grab, NOW).await.unwrap());
        assert!(!db.store.grabs().delete_grab(team, Test, leased.grab, NOW).await.unwrap());
        assert!(!db.store.grabs().delete_grab(team, Live, GrabId(db.id()), NOW).await.unwrap());
        assert_eq!(db.grab(team, leased.grab).await, before);
    }
}
