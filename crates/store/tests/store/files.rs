//! Attachments.

use std::time::Duration;

use grabd_domain::capture::{AttachmentName, FileKind, SliceNumber};
use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::grabs::{FileKey, GrabFile, GrabSlice, ImageKey, SlicePlace, State};
use grabd_domain::ids::{GrabId, TeamId};
use grabd_store::grabs::{Completion, LeasedJob, NewPlaceholder, PlaceholderOutcome};
use grabd_store::retention::PurgedGrabs;

use crate::harness::{NOW, TestDb, completion, facts, on_both, spec};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn file(db: &TestDb, kind: FileKind, bytes: u64) -> GrabFile {
    GrabFile { kind, key: FileKey::new(db.id().as_u128()), bytes }
}

/// A completion with two files of 30 bytes together.
fn with_files(db: &TestDb, leased: &LeasedJob) -> Completion {
    let mut completion = completion(leased);
    completion.metadata.files = vec![file(db, FileKind::Html, 10), file(db, FileKind::Pdf, 20)];
    completion
}

/// A done grab with files, and these.
async fn done(db: &TestDb, team: TeamId) -> (GrabId, ImageKey, Vec<GrabFile>) {
    let leased = db.leased(team).await;
    let completion = with_files(db, &leased);
    let files = completion.metadata.files.clone();
    let ended = db.store.grabs().complete(completion).await.unwrap().unwrap();
    let State::Done { metadata, .. } = ended.grab.state else { panic!("expected a done grab") };
    assert_eq!(metadata.files, files);
    (leased.grab, leased.upload_key, files)
}

async fn is_found(db: &TestDb, file: &GrabFile) -> bool {
    db.store.grabs().find_file(&file.key).await.unwrap().is_some()
}

on_both! {
    async fn files_are_found_by_their_keys_until_the_image_is_deleted(db) {
        let team = db.team(2).await;
        let (id, image, files) = done(db, team).await;
        let (_, _, other) = done(db, team).await;
        let size = db.store.grabs().stored_bytes(team).await.unwrap();
        let found = db.store.grabs().find_file(&files[1].key).await.unwrap().unwrap();
        assert_eq!((found.name, found.image, found.placeholder_of), (AttachmentName::Also(FileKind::Pdf), image, None));
        assert!(!is_found(db, &file(db, FileKind::Pdf, 1)).await, "an unknown key");
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), []);

        assert!(db.store.grabs().delete_grab(team, Live, id, NOW).await.unwrap());
        for file in &files {
            assert!(!is_found(db, file).await);
        }
        assert!(is_found(db, &other[0]).await);
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), size / 2);
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), []);
    }

    async fn all_slices_of_an_image_are_found_counted_and_deleted(db) {
        let team = db.team(1).await;
        let leased = db.leased(team).await;
        let mut completion = with_files(db, &leased);
        let slice = |y| GrabSlice { key: FileKey::new(db.id().as_u128()), bytes: 3, place: SlicePlace::new(y, 256, None) };
        completion.metadata.slices = (0..u32::from(SliceNumber::MAX)).map(|at| slice(at * 256)).collect();
        let (slices, without) = (completion.metadata.slices.clone(), completion.size_bytes + 30);
        let ended = db.store.grabs().complete(completion).await.unwrap().unwrap();
        let State::Done { metadata, .. } = ended.grab.state else { panic!("expected a done grab") };
        assert_eq!(metadata.slices, slices);
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), without + 64 * 3);
        for (slice, number) in slices.iter().zip(SliceNumber::all()) {
            let found = db.store.grabs().find_file(&slice.key).await.unwrap().unwrap();
            assert_eq!((found.name, &found.image), (AttachmentName::Slice(number), &leased.upload_key));
        }
        assert!(db.store.grabs().delete_grab(team, Live, leased.grab, NOW).await.unwrap());
        for slice in &slices {
            assert_eq!(db.store.grabs().find_file(&slice.key).await.unwrap(), None);
        }
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), 0);
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), []);
    }

    async fn files_count_in_the_storage_of_their_team(db) {
        let (team, plain) = (db.team(1).await, db.team(1).await);
        done(db, team).await;
        let leased = db.leased(plain).await;
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        let without = db.store.grabs().stored_bytes(plain).await.unwrap();
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), without + 30);
    }

    async fn files_of_a_grab_that_was_deleted_during_its_render_are_not_added(db) {
        let team = db.team(1).await;
        let leased = db.leased(team).await;
        assert!(db.store.grabs().delete_grab(team, Live, leased.grab, NOW).await.unwrap());
        let completion = with_files(db, &leased);
        let files = completion.metadata.files.clone();
        db.store.grabs().complete(completion).await.unwrap().unwrap();
        assert!(!is_found(db, &files[0]).await);
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), 0);
    }

    async fn files_are_deleted_by_retention(db) {
        let team = db.team(2).await;
        let (_, _, images) = done(db, team).await;
        let later = NOW + DAY * 9;
        assert_eq!(db.store.retention().purge_images(later, later, 9).await.unwrap(), 1);
        assert!(!is_found(db, &images[0]).await);
        let (_, _, grabs) = done(db, team).await;
        assert_eq!(db.store.retention().purge_grabs(PurgedGrabs::Live, later, later, 9).await.unwrap(), 2);
        assert!(!is_found(db, &grabs[0]).await);
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), 0);
        assert_eq!(db.store.credits().verify_ledger().await.unwrap(), []);
    }

    async fn files_of_placeholders_are_found_with_their_spec(db) {
        let team = db.team(0).await;
        let id = GrabId(db.id());
        let image = Some(ImageKey::new(id.0.as_u128(), "png"));
        let mut metadata = facts();
        metadata.files = vec![file(db, FileKind::Text, 5)];
        let key = metadata.files[0].key.clone();
        let outcome = State::Done { finished_at: NOW, image, size_bytes: 1, execution_ms: 1, metadata };
        let new = NewPlaceholder { id, team, creator: None, spec: spec(), now: NOW, outcome, idempotency: None, fingerprint: None, ceiling: None };
        assert_eq!(db.store.grabs().create_placeholder(new).await.unwrap(), PlaceholderOutcome::Stored);
        let found = db.store.grabs().find_file(&key).await.unwrap().unwrap();
        assert_eq!((found.name, found.placeholder_of), (AttachmentName::Also(FileKind::Text), Some(spec())));
        assert_eq!(db.store.grabs().stored_bytes(team).await.unwrap(), 0);
        assert!(db.store.grabs().delete_grab(team, Test, id, NOW).await.unwrap());
        assert_eq!(db.store.grabs().find_file(&key).await.unwrap(), None);
    }
}
