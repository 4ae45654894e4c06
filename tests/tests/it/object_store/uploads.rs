//! Uploads that fail: a grab is never done without its image, and no failure of the object store is charged.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::FutureExt;
use grabd_tests::harness::TestApp;
use grabd_tests::scripted_renderer::ScriptedRenderer;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{capture, credits_left, id, image_url, object_name, png, start};

/// Creates a grab that is not waited for.
async fn create_async(app: &TestApp) -> Result<Value> {
    let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
    let response = request.json(&json!({ "url": app.site.url("/tiny") })).send().await?;
    ensure!(response.status() == 202, "{}", response.status());
    Ok(response.json().await?)
}

async fn status(app: &TestApp, grab: &Value) -> Result<Value> {
    Ok(app.get(&format!("/grabs/{}", id(grab)?), app.live()).await?.1["status"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_requests_are_repeated_within_the_lease() -> Result<()> {
    let (server, app) = start(2, &[]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    server.fail_next(2, Method::PUT, StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
    let image = png([200, 0, 0]);
    let grab = capture(&app, &mut renderer, json!({}), &image, &[]).await?;
    assert_eq!(server.failures_left(), 0);
    assert_eq!(server.object(&object_name(image_url(&grab)?)?)?, image);
    assert_eq!(credits_left(&app).await?, json!(1));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn grab_is_done_only_when_its_image_is_stored() -> Result<()> {
    let (server, app) = start(1, &[]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let pause = server.pause_next(Method::PUT);
    let grab = create_async(&app).await?;
    let image = png([200, 0, 0]);
    let mut rendered = Box::pin(renderer.render(&image, &[]));
    tokio::select! {
        () = pause.reached() => {}
        result = &mut rendered => anyhow::bail!("accepted before the image is stored: {result:?}"),
    }
    assert_eq!((status(&app, &grab).await?, server.objects()?.len()), (json!("processing"), 0));
    assert!((&mut rendered).now_or_never().is_none());
    pause.release();
    ensure!(rendered.await?);
    assert_eq!((status(&app, &grab).await?, server.objects()?.len()), (json!("done"), 1));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn grab_whose_image_is_denied_fails_uncharged_after_three_attempts() -> Result<()> {
    let (server, app) = start(1, &[]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    server.fail_next(3, Method::PUT, StatusCode::FORBIDDEN, "AccessDenied");
    let image = png([200, 0, 0]);
    let attempts = async {
        for _ in 0..3 {
            ensure!(renderer.render(&image, &[]).await?, "the lease was lost");
        }
        Ok(())
    };
    let (created, ()) = tokio::try_join!(app.create(json!({ "url": app.site.url("/tiny") })), attempts)?;
    assert_eq!((created.0, &created.1["error"]["code"]), (500, &json!("internal_error")), "{created:?}");
    assert_eq!((server.failures_left(), server.objects()?.len()), (0, 0));
    assert_eq!(credits_left(&app).await?, json!(1));
    // The next one is stored again.
    capture(&app, &mut renderer, json!({}), &image, &[]).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn second_attempt_stores_another_object() -> Result<()> {
    let (server, app) = start(1, &[]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    server.fail_next(1, Method::PUT, StatusCode::FORBIDDEN, "AccessDenied");
    let (first, second) = (png([200, 0, 0]), png([0, 200, 0]));
    let attempts = async {
        ensure!(renderer.render(&first, &[]).await?);
        ensure!(renderer.render(&second, &[]).await?);
        Ok(())
    };
    let (created, ()) = tokio::try_join!(app.create(json!({ "url": app.site.url("/tiny") })), attempts)?;
    assert_eq!(created.0, 200, "{created:?}");
    let url = image_url(&created.1)?;
    let shown: Bytes = app.client.get(url).send().await?.bytes().await?;
    assert_eq!(shown, second);
    let objects = server.objects()?;
    assert_eq!(objects.first().context("an object")?, &object_name(url)?);
    assert_eq!(objects.len(), 1);
    app.finish().await
}
