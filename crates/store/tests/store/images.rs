//! The files, and which of them may go.

use std::path::Path;

use bytes::Bytes;
use grabd_domain::grabs::ImageKey;
use grabd_store::{Drift, Images};

use crate::harness::{NOW, completion, on_both};

on_both! {
    async fn a_picture_that_is_shown_is_never_due(world) {
        let team = world.team(2).await;
        let leased = world.leased(team).await;
        world.store.complete(completion(&leased)).await.unwrap().unwrap();
        let lost = ImageKey::new(1, "png");
        for (not_before, key) in [&leased.upload_key, &lost].into_iter().enumerate() {
            let on_the_list =
                format!("INSERT INTO image_gc (key, not_before) VALUES ('{}', {not_before})", key.as_str());
            world.meddle(&on_the_list).await.unwrap();
        }
        assert_eq!(world.store.due_images(NOW, 1).await.unwrap(), [lost]);
        // It should not even be on the list, and that is found.
        assert_eq!(world.store.verify_ledger().await.unwrap(), [Drift::Doomed(leased.grab)]);
        assert_eq!(world.meddle("DELETE FROM image_gc").await.unwrap(), 2);
    }
}

fn key() -> ImageKey {
    ImageKey::new(123_456_789, "png")
}

fn files(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                files.push(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    files
}

#[tokio::test]
async fn a_picture_is_put_found_and_deleted() {
    let root = tempfile::tempdir().unwrap();
    let images = Images::local(root.path().join("images")).unwrap();
    assert_eq!(images.file(&key()).await, None);
    for content in ["one", "one"] {
        images.put(&key(), Bytes::from_static(content.as_bytes())).await.unwrap();
    }
    let file = images.file(&key()).await.unwrap();
    assert_eq!(file, root.path().join("images").join(key().path()));
    assert_eq!(std::fs::read(&file).unwrap(), b"one");
    assert_eq!(files(root.path()), [format!("images/{}", key().path())]);
    for _ in 0..2 {
        images.delete(&key()).await.unwrap();
        assert_eq!(images.file(&key()).await, None);
    }
    assert!(images.free_bytes().await.unwrap() > 0);
}

#[tokio::test]
async fn what_an_earlier_life_left_half_written_is_removed_and_the_rest_stays() {
    let root = tempfile::tempdir().unwrap();
    let images = Images::local(root.path().to_path_buf()).unwrap();
    images.put(&key(), Bytes::from_static(b"whole")).await.unwrap();
    std::fs::write(root.path().join("tmp").join("half.png"), b"ha").unwrap();
    let images = Images::local(root.path().to_path_buf()).unwrap();
    assert_eq!(files(root.path()), [key().path()]);
    assert!(images.file(&key()).await.is_some());
}

#[tokio::test]
async fn a_picture_that_cannot_be_written_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let images = Images::local(root.path().to_path_buf()).unwrap();
    // A directory where the file should go makes the last step fail.
    std::fs::create_dir_all(root.path().join(key().path())).unwrap();
    assert!(images.put(&key(), Bytes::from_static(b"x")).await.is_err());
    assert_eq!(images.file(&key()).await, None);
    assert_eq!(files(root.path()), [""; 0]);
}
