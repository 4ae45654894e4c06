//! Deletion of images, and the places where they are.

use grabd_domain::grabs::ImageKey;
use grabd_store::credits::Drift;
use grabd_store::image_places::ImagePlaces;

use crate::harness::{NOW, completion, on_both};

on_both! {
    async fn image_in_use_is_never_due_for_deletion(db) {
        let team = db.team(2).await;
        let leased = db.leased(team).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        let lost = ImageKey::new(1, "png");
        for (not_before, key) in [&leased.upload_key, &lost].into_iter().enumerate() {
            let schedule = format!("INSERT INTO image_gc (key, not_before) VALUES ('{}', {not_before})", key.as_str());
            db.execute_raw(&schedule).await.unwrap();
        }
        assert_eq!(db.store.grabs().due_images(NOW, 1).await.unwrap(), [lost]);
        // An image in use should not be scheduled at all; the ledger check reports it.
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), [Drift::ImageScheduledForDeletion(leased.grab)]);
        assert_eq!(db.execute_raw("DELETE FROM image_gc").await.unwrap(), 2);
    }
}

on_both! {
    async fn processes_that_start_together_record_the_same_places(db) {
        let places = |first: &str, others: &[&str]| ImagePlaces {
            first: Some(first.to_owned()),
            others: others.iter().map(|&url| url.to_owned()).collect(),
        };
        for recorded in [places("s3://b", &["file:///a"]), places("file:///a", &["s3://b"]), places("s3://b", &[])] {
            let starts = (0..8).map(|_| db.store.images().record_image_places(recorded.clone()));
            futures::future::try_join_all(starts).await.unwrap();
            assert_eq!(db.store.images().image_places().await.unwrap(), recorded);
        }
    }
}
