//! Images that are deleted from a bucket.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::FutureExt;
use grabd_domain::capture::FileKind;
use grabd_tests::harness::TestApp;
use grabd_tests::scripted_renderer::ScriptedRenderer;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{capture, id, image_url, object_name, png, start};

async fn delete(app: &TestApp, grab: &Value) -> Result<StatusCode> {
    let url = format!("{}/grabs/{}", app.base(), id(grab)?);
    Ok(app.client.delete(url).bearer_auth(app.live()).send().await?.status())
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_answers_when_the_object_is_gone() -> Result<()> {
    let (server, app) = start(2, &[]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let text = [(FileKind::Text, Bytes::from_static(b"text"))];
    let grab = capture(&app, &mut renderer, json!({ "also": ["text"] }), &png([200, 0, 0]), &text).await?;
    let kept = capture(&app, &mut renderer, json!({}), &png([0, 200, 0]), &[]).await?;
    assert_eq!(server.objects()?.len(), 3);
    let (url, file) = (image_url(&grab)?, grab["files"][0]["url"].as_str().context("the text")?);

    // Objects are deleted with POST, several at a time.
    let pause = server.pause_next(Method::POST);
    let mut deleted = Box::pin(delete(&app, &grab));
    tokio::select! {
        () = pause.reached() => {}
        status = &mut deleted => anyhow::bail!("answered before the object is gone: {status:?}"),
    }
    // Nobody can see the image any more, although its object still exists.
    assert_eq!(server.objects()?.len(), 3);
    for url in [url, file] {
        assert_eq!(app.client.get(url).send().await?.status(), 404);
    }
    assert!((&mut deleted).now_or_never().is_none());
    pause.release();
    assert_eq!(deleted.await?, 204);
    assert_eq!(server.objects()?.into_iter().collect::<Vec<_>>(), [object_name(image_url(&kept)?)?]);
    assert_eq!(app.client.get(image_url(&kept)?).send().await?.status(), 200);
    assert_eq!(delete(&app, &grab).await?, 204);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn object_that_could_not_be_deleted_is_deleted_by_the_next_sweep() -> Result<()> {
    let (server, app) = start(1, &[]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let grab = capture(&app, &mut renderer, json!({}), &png([200, 0, 0]), &[]).await?;
    server.fail_next(1, Method::POST, StatusCode::FORBIDDEN, "AccessDenied");
    assert_eq!(delete(&app, &grab).await?, 204);
    assert_eq!(app.client.get(image_url(&grab)?).send().await?.status(), 404);
    // The sweep runs at the start.
    let app = app.restart().await?;
    let gone = async {
        let mut ticks = tokio::time::interval(std::time::Duration::from_millis(50));
        while !server.objects()?.is_empty() {
            ticks.tick().await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), gone).await.context("the object remains")??;
    ensure!(server.failures_left() == 0, "the deletion was not tried");
    app.finish().await
}
