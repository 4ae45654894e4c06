//! What the service itself reads from a bucket.

use anyhow::{Context, Result};
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::UserId;
use grabd_engine::grabs::thumbnail;
use grabd_tests::agent::{Agent, MODERN};
use grabd_tests::leftovers::files_below;
use grabd_tests::pixels;
use grabd_tests::scripted_renderer::ScriptedRenderer;
use reqwest::{Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

use super::{capture, id, image_url, object_name, png, start};

#[tokio::test(flavor = "multi_thread")]
async fn comparison_thumbnail_and_preview_read_the_bucket() -> Result<()> {
    let (server, app) = start(2, &[("images.delivery", "redirect")]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let first = capture(&app, &mut renderer, json!({}), &png([200, 0, 0]), &[]).await?;
    let options = json!({ "compare_to": id(&first)? });
    let second = capture(&app, &mut renderer, options, &png([0, 0, 200]), &[]).await?;
    assert_eq!(second["difference"]["compared_to"], first["id"], "{second}");
    let difference = second["files"][0]["url"].as_str().context("the difference")?;
    assert_eq!(app.client.get(difference).send().await?.status(), 302);
    let name = format!("{}.difference", object_name(image_url(&second)?)?);
    let drawn = pixels::decode(&server.object(&name)?);
    assert_eq!((drawn.width(), drawn.height()), (320, 240));

    let principal = Principal::User(UserId(Uuid::from_u128(1)));
    let caller = Caller { team: app.team.team, environment: Environment::Live, principal };
    let small = thumbnail(app.service.core(), caller, id(&first)?.parse()?).await?;
    let stored = server.object(&format!("{}.thumbnail.jpeg", object_name(image_url(&first)?)?))?;
    assert_eq!(stored, small);
    image::load_from_memory_with_format(&small, image::ImageFormat::Jpeg)?;

    // The preview of MCP is the image itself, not a redirect.
    let agent = Agent::new(&app, app.live(), MODERN);
    let answer = agent.call("get_grab", json!({ "id": first["id"], "include_image": true })).await?;
    assert_eq!(answer.result()?["content"][0]["type"], "image", "{}", answer.body);
    let left = files_below(&app.data_dir().join("images"))?;
    assert!(left.is_empty(), "copies of images remain: {left:?}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn comparison_that_cannot_read_the_bucket_fails_uncharged() -> Result<()> {
    let (server, app) = start(2, &[]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let first = capture(&app, &mut renderer, json!({}), &png([200, 0, 0]), &[]).await?;
    server.fail_next(1, Method::GET, StatusCode::FORBIDDEN, "AccessDenied");
    let body = json!({ "url": app.site.url("/tiny"), "compare_to": id(&first)? });
    let image = png([0, 0, 200]);
    let (created, accepted) = tokio::try_join!(app.create_refused(body), renderer.render(&image, &[]))?;
    assert!(accepted && server.failures_left() == 0);
    assert_eq!(created.summary(), (500, "render_failed", "service"));
    assert_eq!(super::credits_left(&app).await?, json!(1));
    app.finish().await
}
