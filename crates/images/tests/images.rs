//! Image files in a directory.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use grabd_domain::Timestamp;
use grabd_domain::capture::AttachmentName;
use grabd_domain::grabs::ImageKey;
use grabd_images::{ImageFile, ImageOptions, Images, Location, S3Options, Shared, Upload};

fn key() -> ImageKey {
    ImageKey::new(123_456_789, "png")
}

/// Time limit of storing an image.
const LIMIT: Duration = Duration::from_secs(10);

/// The path of a file that is in a directory.
async fn path(file: ImageFile) -> Option<PathBuf> {
    file.local_copy().await.unwrap().map(|copy| copy.path().to_owned())
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
async fn start_keeps_the_unfinished_files_of_other_processes_in_a_shared_directory() {
    let dir = tempfile::tempdir().unwrap();
    let stale_before = Timestamp::from_ms(1_000_000);
    let options = |shared| ImageOptions {
        scratch: dir.path().to_owned(),
        location: Location::Directory(dir.path().to_owned()),
        fallback: None,
        s3: S3Options::default(),
        shared,
    };
    let shared = || Some(Shared { stale_before, prefix: "other-".into() });
    let mut upload = Images::open(&options(shared())).unwrap().begin(&key()).await.unwrap();
    upload.write(Bytes::from_static(b"part")).await.unwrap();
    let stale = dir.path().join("tmp/stale");
    let file = File::create(&stale).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_millis(999_999)).unwrap();

    let images = Images::open(&options(shared())).unwrap();
    assert!(!stale.exists(), "it is left over from a process that was killed");
    upload.finish(LIMIT).await.unwrap();
    assert!(images.image(&key()).size().await.unwrap().is_some());

    // Alone, all unfinished files are left over.
    File::create(&stale).unwrap();
    Images::open(&options(None)).unwrap();
    assert_eq!(files(dir.path()), [key().path()]);
}

#[tokio::test]
async fn image_is_stored_found_and_deleted() {
    let root = tempfile::tempdir().unwrap();
    let images = Images::local(root.path().join("images")).unwrap();
    assert_eq!(path(images.image(&key())).await, None);
    for content in ["one", "one"] {
        images.put(&key(), Bytes::from_static(content.as_bytes()), LIMIT).await.unwrap();
    }
    let file = path(images.image(&key())).await.unwrap();
    assert_eq!(file, root.path().join("images").join(key().path()));
    assert_eq!(std::fs::read(&file).unwrap(), b"one");
    assert_eq!(files(root.path()), [format!("images/{}", key().path())]);
    for _ in 0..2 {
        images.delete(&key()).await.unwrap();
        assert_eq!(path(images.image(&key())).await, None);
    }
    let space = images.disk_space().await.unwrap();
    assert!(space.free_bytes > 0 && space.free_bytes < space.total_bytes, "{space:?}");
}

#[tokio::test]
async fn image_in_parts_is_complete_or_absent() {
    let root = tempfile::tempdir().unwrap();
    let images = Images::local(root.path().to_path_buf()).unwrap();
    let mut abandoned = images.begin(&key()).await.unwrap();
    let mut upload = images.begin(&key()).await.unwrap();
    abandoned.write(Bytes::from_static(b"other")).await.unwrap();
    for part in ["in ", "parts"] {
        upload.write(Bytes::from_static(part.as_bytes())).await.unwrap();
    }
    assert_eq!((upload.bytes(), path(images.image(&key())).await), (8, None));
    drop(abandoned);
    upload.finish(LIMIT).await.unwrap();
    assert_eq!(std::fs::read(path(images.image(&key())).await.unwrap()).unwrap(), b"in parts");
    assert_eq!(files(root.path()), [key().path()], "unfinished files are removed");
}

#[tokio::test]
async fn all_attachments_of_an_image_are_completed_and_deleted_with_it() {
    let root = tempfile::tempdir().unwrap();
    let images = Images::local(root.path().to_path_buf()).unwrap();
    let mut uploads = vec![images.begin(&key()).await.unwrap()];
    for name in AttachmentName::all() {
        let mut upload = images.begin_file(&key(), name).await.unwrap();
        upload.write(Bytes::from(format!("{name:?}"))).await.unwrap();
        upload.close().await.unwrap();
        uploads.push(upload);
    }
    Upload::finish_all(uploads, LIMIT).await.unwrap();
    for name in AttachmentName::all() {
        let path = path(images.attachment(&key(), name)).await.unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), format!("{name:?}"));
    }
    images.delete(&key()).await.unwrap();
    assert_eq!(files(root.path()), [""; 0]);

    let mut closed = images.begin(&key()).await.unwrap();
    closed.close().await.unwrap();
    assert!(closed.write(Bytes::from_static(b"more")).await.is_err(), "its parts have ended");
    assert!(closed.finish(LIMIT).await.is_err(), "what failed is not completed");
    assert_eq!(files(root.path()), [""; 0]);
}

#[tokio::test]
async fn thumbnail_is_deleted_with_its_image() {
    let root = tempfile::tempdir().unwrap();
    let images = Images::local(root.path().to_path_buf()).unwrap();
    let thumbnail = Bytes::from_static(b"small");
    images.put_thumbnail(&key(), thumbnail.clone()).await.unwrap();
    assert_eq!(files(root.path()), [""; 0], "an image that was deleted gets no thumbnail");
    images.put(&key(), Bytes::from_static(b"large"), LIMIT).await.unwrap();
    assert_eq!(images.thumbnail(&key()).await.unwrap(), None);
    images.put_thumbnail(&key(), thumbnail.clone()).await.unwrap();
    assert_eq!(images.thumbnail(&key()).await.unwrap(), Some(thumbnail));
    images.delete(&key()).await.unwrap();
    assert_eq!(files(root.path()), [""; 0]);
}

#[tokio::test]
async fn opening_removes_unfinished_files_only() {
    let root = tempfile::tempdir().unwrap();
    let images = Images::local(root.path().to_path_buf()).unwrap();
    images.put(&key(), Bytes::from_static(b"whole"), LIMIT).await.unwrap();
    std::fs::write(root.path().join("tmp").join("half.png"), b"ha").unwrap();
    let images = Images::local(root.path().to_path_buf()).unwrap();
    assert_eq!(files(root.path()), [key().path()]);
    assert!(path(images.image(&key())).await.is_some());
}

#[tokio::test]
async fn failed_put_leaves_no_file() {
    let root = tempfile::tempdir().unwrap();
    let images = Images::local(root.path().to_path_buf()).unwrap();
    // A directory at the final path makes the rename fail.
    std::fs::create_dir_all(root.path().join(key().path())).unwrap();
    assert!(images.put(&key(), Bytes::from_static(b"x"), LIMIT).await.is_err());
    assert_eq!(path(images.image(&key())).await, None);
    assert_eq!(files(root.path()), [""; 0]);
}
