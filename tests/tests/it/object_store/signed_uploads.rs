//! Uploads to signed URLs, without credentials and without a service.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use grabd_domain::grabs::ImageKey;
use grabd_images::{Error, Images, SignedUploads, UploadError, Uploader};
use grabd_tests::s3_server::S3Server;
use grabd_tests::tls_front::TlsFront;
use reqwest::{Method, StatusCode};
use tokio::time::{Instant, interval, timeout};

const LIMIT: Duration = Duration::from_secs(30);
const IMAGE: Bytes = Bytes::from_static(b"the image");

fn key() -> ImageKey {
    ImageKey::new(123_456_789, "png")
}

fn soon() -> Instant {
    Instant::now() + LIMIT
}

#[tokio::test]
async fn signed_url_writes_one_object_once_until_it_expires() -> Result<()> {
    let (server, scratch) = (S3Server::start().await?, tempfile::tempdir()?);
    let images = Images::open(&server.options(scratch.path()))?;
    let uploader = Uploader::new(b"")?;
    let missing = images.check_uploaded(&key(), 9, LIMIT).await;
    assert!(matches!(missing, Err(Error::NotFound)), "{missing:?}");
    let target = images.upload_target(&key(), Duration::from_millis(3900)).await?.context("a target")?;
    assert_eq!(target.valid, Duration::from_secs(3));
    uploader.upload(&target, &IMAGE, soon()).await?;
    assert_eq!(server.object(&key().path())?, IMAGE);
    images.check_uploaded(&key(), 9, LIMIT).await?;
    let other = images.check_uploaded(&key(), 8, LIMIT).await;
    assert!(matches!(other, Err(Error::OtherSize { found: 9, reported: 8 })), "{other:?}");
    let second = uploader.upload(&target, &Bytes::from_static(b"another image"), soon()).await;
    assert!(matches!(&second, Err(UploadError::Refused(text)) if !text.contains("http")), "{second:?}");
    assert_eq!(server.object(&key().path())?, IMAGE);

    // Neither another object, nor another method, nor without the headers.
    let other = target.url.replace(key().as_str(), ImageKey::new(1, "png").as_str());
    let client = grabd_tests::client::client().build()?;
    let signed = |request: grabd_tests::client::RequestBuilder| {
        target.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    };
    for request in [signed(client.put(&other)), signed(client.delete(&target.url)), client.put(&target.url)] {
        let response = request.body("other").send().await?;
        ensure!(response.status() == 403, "{}", response.status());
    }
    assert_eq!(server.objects()?.len(), 1);

    // A request with a wrong signature is refused for that reason until the URL has expired.
    let (unsigned, last) = target.url.split_at(target.url.len() - 1);
    let wrong = format!("{unsigned}{}", if last == "0" { "1" } else { "0" });
    let expired = async {
        let mut ticks = interval(Duration::from_millis(50));
        loop {
            ticks.tick().await;
            if signed(client.put(&wrong)).send().await?.text().await?.contains("expired") {
                return anyhow::Ok(());
            }
        }
    };
    timeout(LIMIT, expired).await.context("the URL does not expire")??;
    images.delete(&key()).await?;
    let late = uploader.upload(&target, &IMAGE, soon()).await;
    assert_eq!(late, Err(UploadError::Refused("403 AccessDenied".to_owned())));
    assert!(server.objects()?.is_empty());
    Ok(())
}

#[tokio::test]
async fn what_the_store_supports_is_found_out_and_remembered() -> Result<()> {
    let (server, scratch) = (S3Server::start().await?, tempfile::tempdir()?);
    let uploader = Uploader::new(b"")?;
    let condition = ("if-none-match".to_owned(), "*".to_owned());
    let (denied, unknown) = ((StatusCode::FORBIDDEN, "AccessDenied"), (StatusCode::NOT_IMPLEMENTED, "NotImplemented"));
    for (failures, (status, code), expected) in [
        (0, denied, SignedUploads::Once),
        (1, unknown, SignedUploads::Unconditional),
        (2, denied, SignedUploads::Refused),
    ] {
        let images = Images::open(&server.options(scratch.path()))?;
        server.fail_next(failures, Method::PUT, status, code);
        assert_eq!(images.probe_signed_uploads("a-probe", &uploader).await?, Some(expected));
        assert_eq!((server.failures_left(), server.objects()?.len()), (0, 0));
        let target = images.upload_target(&key(), LIMIT).await?;
        let is_conditional = target.map(|target| target.headers.contains(&condition));
        let is_expected = match expected {
            SignedUploads::Once | SignedUploads::Repeatable => Some(true),
            SignedUploads::Unconditional => Some(false),
            SignedUploads::Refused => None,
        };
        assert_eq!(is_conditional, is_expected, "{expected:?}");
    }
    // Without a bucket, there is nothing to find out.
    let images = Images::local(scratch.path().join("images"))?;
    assert_eq!(images.probe_signed_uploads("a-probe", &uploader).await?, None);
    assert_eq!(images.upload_target(&key(), LIMIT).await?, None);
    Ok(())
}

#[tokio::test]
async fn upload_is_repeated_until_its_time_is_over() -> Result<()> {
    let (server, scratch) = (S3Server::start().await?, tempfile::tempdir()?);
    let images = Images::open(&server.options(scratch.path()))?;
    let uploader = Uploader::new(b"")?;
    let target = images.upload_target(&key(), LIMIT).await?.context("a target")?;
    server.fail_next(2, Method::PUT, StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
    server.fail_next(1, Method::PUT, StatusCode::CONFLICT, "ConditionalRequestConflict");
    uploader.upload(&target, &IMAGE, soon()).await?;
    assert_eq!(server.failures_left(), 0);

    // The first request was processed, and its response was lost.
    server.fail_next(1, Method::PUT, StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    uploader.upload(&target, &IMAGE, soon()).await?;

    server.fail_next(1000, Method::PUT, StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
    let failed = uploader.upload(&target, &IMAGE, Instant::now() + Duration::from_millis(500)).await;
    assert_eq!(failed, Err(UploadError::Failed("503 SlowDown".to_owned())));
    Ok(())
}

#[tokio::test]
async fn store_with_a_certificate_of_the_operator_needs_its_authority() -> Result<()> {
    let (server, scratch) = (S3Server::start().await?, tempfile::tempdir()?);
    let front = TlsFront::start(server.address()).await?;
    let mut options = server.options(scratch.path());
    options.s3.endpoint = front.origin();
    options.s3.extra_roots = front.authority().as_bytes().to_vec();
    let images = Images::open(&options)?;
    let target = images.upload_target(&key(), LIMIT).await?.context("a target")?;
    let refused = Uploader::new(b"")?.upload(&target, &IMAGE, soon()).await;
    assert!(matches!(&refused, Err(UploadError::Unreachable(text)) if text.contains("certificate")), "{refused:?}");
    assert!(server.objects()?.is_empty());
    Uploader::new(front.authority().as_bytes())?.upload(&target, &IMAGE, soon()).await?;
    images.check_uploaded(&key(), 9, LIMIT).await?;
    assert!(Uploader::new(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n").is_err());
    Ok(())
}
