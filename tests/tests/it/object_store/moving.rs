//! Images are moved between a directory and a bucket while the service runs.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::FutureExt;
use grabd_domain::capture::FileKind;
use grabd_domain::grabs::ImageKey;
use grabd_tests::harness::TestApp;
use grabd_tests::leftovers::files_below;
use grabd_tests::s3_server::S3Server;
use grabd_tests::scripted_renderer::ScriptedRenderer;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::commands::admin;
use super::{capture, id, image_url, object_name, png, start_on};

/// The settings of the object store, with new images at one place and others at another.
async fn restart(app: TestApp, url: &str, fallback: &str) -> Result<TestApp> {
    app.restart_with(&[("images.url", url), ("images.fallback_url", fallback)]).await
}

async fn move_to(server: &S3Server, app: &TestApp, url: &str, fallback: &str) -> Result<bool> {
    let overlay = [("images.url", url), ("images.fallback_url", fallback)];
    admin(server, &app.data_dir(), &overlay, &["images", "move", "--to", url]).await
}

fn path_of(grab: &Value) -> Result<String> {
    object_name(image_url(grab)?)
}

async fn fetch(app: &TestApp, path: &str) -> Result<(u16, Bytes)> {
    let response = app.client.get(format!("{}/{path}", app.service.public_url())).send().await?;
    Ok((response.status().as_u16(), response.bytes().await?))
}

fn images_in(directory: &Path) -> Result<usize> {
    Ok(files_below(&directory.join("i"))?.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_moved_to_a_bucket_and_back() -> Result<()> {
    let server = S3Server::start().await?;
    let app = start_on(&server, 9, &[("images.url", "")]).await?;
    let directory = app.data_dir().join("images");
    let (bucket, file_url) = (server.url(), format!("file://{}", directory.display()));
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let text = [(FileKind::Text, Bytes::from_static(b"text"))];
    let (red, green) = (png([200, 0, 0]), png([0, 200, 0]));
    let first = capture(&app, &mut renderer, json!({ "also": ["text"] }), &red, &text).await?;
    let deleted = capture(&app, &mut renderer, json!({}), &green, &[]).await?;
    assert_eq!(images_in(&directory)?, 3);
    // The service still uses the directory only.
    let early = move_to(&server, &app, &bucket, &file_url).await.err().context("it is moved")?;
    ensure!(format!("{early:#}").contains("restart it with these settings"), "{early:#}");

    let app = restart(app, &bucket, &file_url).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let second = capture(&app, &mut renderer, json!({}), &green, &[]).await?;
    assert_eq!((images_in(&directory)?, server.objects()?.len()), (3, 1));
    // A comparison reads both places.
    let options = json!({ "compare_to": id(&first)? });
    let compared = capture(&app, &mut renderer, options, &green, &[]).await?;
    assert!(compared["difference"]["ratio"].as_f64().is_some_and(|changed| changed > 0.0), "{compared}");
    let url = format!("{}/grabs/{}", app.base(), id(&deleted)?);
    ensure!(app.client.delete(url).bearer_auth(app.live()).send().await?.status() == 204);
    assert_eq!(images_in(&directory)?, 2, "the deletion applies to the old place");
    assert_eq!(fetch(&app, &path_of(&first)?).await?, (200, red.clone()));

    // An interrupted move continues. What was copied of an image that was deleted meanwhile is deleted.
    let stale = ImageKey::new(77, "png");
    app.service.store().images().mark_moving_images(vec![stale.clone()]).await?;
    let options = server.options(&app.data_dir().join("other"));
    let storage = grabd_images::Images::open(&options)?;
    storage.put(&stale, red.clone(), std::time::Duration::from_secs(10)).await?;
    server.fail_next(1, Method::PUT, StatusCode::FORBIDDEN, "AccessDenied");
    ensure!(move_to(&server, &app, &bucket, &file_url).await.is_err(), "the probe is denied");
    ensure!(move_to(&server, &app, &bucket, &file_url).await?);
    assert_eq!((images_in(&directory)?, server.object(&path_of(&first)?)?), (0, red.to_vec()));
    let text_name = format!("{}.text", path_of(&first)?);
    assert_eq!(server.object(&text_name)?, b"text");
    assert!(!server.objects()?.contains(&stale.path()));
    assert!(app.service.store().images().moving_images().await?.is_empty());
    assert_eq!(fetch(&app, &path_of(&first)?).await?, (200, red.clone()));

    // From now on, the bucket suffices. Back: the service must not forget it.
    let app = restart(app, &bucket, "").await?;
    assert_eq!(fetch(&app, &path_of(&second)?).await?, (200, green.clone()));
    let (app, refused) = app.restart_refused(&[("images.url", ""), ("images.fallback_url", "")]).await?;
    ensure!(refused.contains(&bucket) && refused.contains("GRABD_IMAGES__FALLBACK_URL"), "{refused}");
    let app = restart(app, "", &bucket).await?;
    ensure!(move_to(&server, &app, &file_url, &bucket).await?);
    assert!(server.objects()?.is_empty());
    let app = restart(app, "", "").await?;
    for (grab, image) in [(&first, &red), (&second, &green)] {
        assert_eq!(fetch(&app, &path_of(grab)?).await?, (200, image.clone()));
    }
    assert_eq!(fetch(&app, &path_of(&deleted)?).await?.0, 404);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn image_that_is_deleted_while_it_is_copied_is_in_neither_place() -> Result<()> {
    let server = S3Server::start().await?;
    let app = start_on(&server, 1, &[("images.url", "")]).await?;
    let directory = app.data_dir().join("images");
    let (bucket, file_url) = (server.url(), format!("file://{}", directory.display()));
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let grab = capture(&app, &mut renderer, json!({}), &png([200, 0, 0]), &[]).await?;
    let app = restart(app, &bucket, &file_url).await?;
    // Requests of the probe are not paused.
    let probe = server.pause_next(Method::PUT);
    let mut moved = Box::pin(move_to(&server, &app, &bucket, &file_url));
    tokio::select! {
        () = probe.reached() => {}
        result = &mut moved => anyhow::bail!("{result:?}"),
    }
    let copy = server.pause_next(Method::PUT);
    probe.release();
    tokio::select! {
        () = copy.reached() => {}
        result = &mut moved => anyhow::bail!("{result:?}"),
    }
    // The copy has been read, and is on its way.
    let url = format!("{}/grabs/{}", app.base(), id(&grab)?);
    let deletion = app.client.delete(url).bearer_auth(app.live()).send().await?;
    assert_eq!((deletion.status(), images_in(&directory)?), (StatusCode::NO_CONTENT, 0));
    assert!((&mut moved).now_or_never().is_none());
    copy.release();
    ensure!(moved.await?);
    assert!(server.objects()?.is_empty() && images_in(&directory)? == 0);
    app.finish().await
}
