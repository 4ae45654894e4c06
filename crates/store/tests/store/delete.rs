//! A picture is deleted, the grab stays.

use std::time::Duration;

use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::grabs::State;
use grabd_domain::ids::GrabId;
use grabd_store::By;

use crate::harness::{NOW, completion, failing, on_both};

on_both! {
    async fn a_deleted_picture_is_collected_and_the_grab_stays_paid(world) {
        let team = world.team(1).await;
        let leased = world.leased(team).await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        let before = world.grab(team, leased.grab).await;
        let later = NOW + Duration::from_secs(5);
        assert!(world.store.delete_grab(team, Live, leased.grab, NOW).await.unwrap());
        assert!(world.store.delete_grab(team, Live, leased.grab, later).await.unwrap());
        let grab = world.grab(team, leased.grab).await;
        assert_eq!(grab.deleted_at, Some(NOW));
        assert!(matches!(grab.state, State::Done { image: None, .. }));
        assert!(grab.revision() > before.revision());
        assert_eq!(world.store.due_images(NOW, 9).await.unwrap(), [leased.upload_key]);
        assert_eq!(world.credits(team).await, (0, 0));
    }

    async fn an_open_grab_runs_on_and_its_picture_goes_at_once(world) {
        let team = world.team(1).await;
        let leased = world.leased(team).await;
        assert!(world.store.delete_grab(team, Live, leased.grab, NOW).await.unwrap());
        assert_eq!(world.grab(team, leased.grab).await.state, State::Processing);
        let done = completion(&leased);
        let now = done.now;
        let ended = world.store.complete(done).await.unwrap().unwrap();
        assert!(matches!(ended.grab.state, State::Done { image: None, .. }));
        assert_eq!(world.store.due_images(now, 9).await.unwrap(), [leased.upload_key]);
        assert_eq!(world.credits(team).await, (0, 0));
    }

    async fn a_failed_grab_has_nothing_to_delete_but_says_so(world) {
        let team = world.team(1).await;
        let id = world.pending(team).await;
        world.store.fail(failing(id, By::Cancel, NOW)).await.unwrap().unwrap();
        assert!(world.store.delete_grab(team, Live, id, NOW).await.unwrap());
        assert_eq!(world.grab(team, id).await.deleted_at, Some(NOW));
        assert_eq!(world.store.due_images(NOW, 9).await.unwrap(), []);
    }

    async fn nobody_deletes_what_is_not_theirs(world) {
        let (team, other) = (world.team(1).await, world.team(1).await);
        let leased = world.leased(team).await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        let before = world.grab(team, leased.grab).await;
        assert!(!world.store.delete_grab(other, Live, leased.grab, NOW).await.unwrap());
        assert!(!world.store.delete_grab(team, Test, leased.grab, NOW).await.unwrap());
        assert!(!world.store.delete_grab(team, Live, GrabId(world.id()), NOW).await.unwrap());
        assert_eq!(world.grab(team, leased.grab).await, before);
    }
}
