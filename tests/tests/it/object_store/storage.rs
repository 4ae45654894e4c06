//! The image storage over a bucket, without a service.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::TryStreamExt;
use grabd_domain::capture::AttachmentName;
use grabd_domain::grabs::ImageKey;
use grabd_images::{Content, Error, Found, ImageFile, Images, Upload};
use grabd_tests::leftovers::files_below;
use grabd_tests::s3_server::S3Server;
use reqwest::{Method, StatusCode};

const LIMIT: Duration = Duration::from_secs(30);

fn key() -> ImageKey {
    ImageKey::new(123_456_789, "png")
}

async fn read(file: &ImageFile) -> Result<Option<Vec<u8>>> {
    let Some(Found { size, content }) = file.read(None).await? else { return Ok(None) };
    let Content::Stream(stream) = content else { anyhow::bail!("a file") };
    let all: Vec<Bytes> = stream.try_collect().await?;
    ensure!(u64::try_from(all.concat().len())? == size, "the size is wrong");
    Ok(Some(all.concat()))
}

#[tokio::test]
async fn image_and_all_attachments_it_are_stored_read_and_deleted() -> Result<()> {
    let (server, scratch) = (S3Server::start().await?, tempfile::tempdir()?);
    let images = Images::open(&server.options(scratch.path()))?;
    assert!(images.needs_lookup());
    assert_eq!((images.image(&key()).size().await?, read(&images.image(&key())).await?), (None, None));
    assert!(images.image(&key()).local_copy().await?.is_none() && images.thumbnail(&key()).await?.is_none());
    let mut abandoned = images.begin(&key()).await?;
    abandoned.write(Bytes::from_static(b"other")).await?;
    let mut uploads = vec![images.begin(&key()).await?];
    uploads[0].write(Bytes::from_static(b"the ")).await?;
    uploads[0].write(Bytes::from_static(b"image")).await?;
    for name in AttachmentName::all() {
        let mut upload = images.begin_file(&key(), name).await?;
        upload.write(Bytes::from(format!("{name:?}"))).await?;
        upload.close().await?;
        uploads.push(upload);
    }
    assert!(server.objects()?.is_empty());
    Upload::finish_all(uploads, LIMIT).await?;
    drop(abandoned);
    assert_eq!(read(&images.image(&key())).await?.as_deref(), Some(&b"the image"[..]));
    for name in AttachmentName::all() {
        assert_eq!(read(&images.attachment(&key(), name)).await?, Some(format!("{name:?}").into_bytes()));
    }
    images.put_thumbnail(&key(), Bytes::from_static(b"small")).await?;
    assert_eq!(images.thumbnail(&key()).await?, Some(Bytes::from_static(b"small")));
    let copy = images.image(&key()).local_copy().await?.context("a copy")?;
    assert_eq!(std::fs::read(copy.path())?, b"the image");
    drop(copy);
    assert_eq!(files_below(scratch.path())?.len(), 0, "temporary files remain");
    assert_eq!(server.objects()?.len(), AttachmentName::all().count() + 2);
    for _ in 0..2 {
        images.delete(&key()).await?;
        assert!(server.objects()?.is_empty());
    }
    images.put_thumbnail(&key(), Bytes::from_static(b"small")).await?;
    assert!(server.objects()?.is_empty(), "an image that was deleted gets no thumbnail");
    Ok(())
}

#[tokio::test]
async fn large_image_is_uploaded_in_parts_or_given_up() -> Result<()> {
    let (server, scratch) = (S3Server::start().await?, tempfile::tempdir()?);
    let images = Images::open(&server.options(scratch.path()))?;
    let image: Vec<u8> = (0..9_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    images.put(&key(), image.clone().into(), LIMIT).await?;
    assert!(read(&images.image(&key())).await? == Some(image.clone()), "another image");
    images.delete(&key()).await?;

    // The second part is denied: nothing is visible, and the first one is given up.
    server.pass_next(Method::PUT);
    server.fail_next(1, Method::PUT, StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
    server.fail_next(1, Method::PUT, StatusCode::FORBIDDEN, "AccessDenied");
    let failed = images.put(&key(), image.into(), LIMIT).await;
    assert!(matches!(&failed, Err(Error::Denied(code)) if code == "403 AccessDenied"), "{failed:?}");
    assert_eq!((server.objects()?.len(), server.unfinished_parts()?, server.failures_left()), (0, 0, 0));
    Ok(())
}

#[tokio::test]
async fn upload_ends_at_its_time_limit() -> Result<()> {
    let (server, scratch) = (S3Server::start().await?, tempfile::tempdir()?);
    let images = Images::open(&server.options(scratch.path()))?;
    let _pause = server.pause_next(Method::PUT);
    let slow = images.put(&key(), Bytes::from_static(b"image"), Duration::from_millis(300)).await;
    assert!(matches!(slow, Err(Error::TooSlow)), "{slow:?}");
    assert_eq!((server.objects()?.len(), files_below(scratch.path())?.len()), (0, 0));
    Ok(())
}

#[tokio::test]
async fn probe_tells_what_is_wrong() -> Result<()> {
    let (server, scratch) = (S3Server::start().await?, tempfile::tempdir()?);
    let options = server.options(scratch.path());
    Images::open(&options)?.probe("a-probe").await?;
    assert!(server.objects()?.is_empty());
    let mut other = options.clone();
    other.s3.keys = Some(("the-access-key".to_owned(), "another secret".to_owned()));
    let denied = Images::open(&other)?.probe("a-probe").await.err().context("denied")?;
    assert!(matches!(&denied, Error::Denied(code) if code.contains("SignatureDoesNotMatch")), "{denied:?}");
    server.fail_next(1, Method::PUT, StatusCode::NOT_FOUND, "NoSuchBucket");
    let missing = Images::open(&options)?.probe("a-probe").await.err().context("no bucket")?;
    assert!(matches!(&missing, Error::NoBucket(code) if code == "404 NoSuchBucket"), "{missing:?}");
    Ok(())
}
