//! `phash`: the perceptual hash of an image, through the whole service.

use anyhow::{Context, Result, ensure};
use grabd_domain::grabs::PerceptualHash;
use grabd_proto::v1::GetGrabRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::receiver::Receiver;
use serde_json::{Value, json};
use tonic::Request;
use tonic::transport::Endpoint;

/// A page with a header, boxes and lines of text, whose places depend on `turn`.
fn page(turn: u32) -> String {
    let boxes: String = (0..6)
        .map(|n| {
            let (left, top) = ((n * 97 + turn * 211) % 620, (n * 131 + turn * 83) % 420);
            format!("<i style='left:{left}px;top:{top}px;background:hsl({}deg 70% 35%)'></i>", n * 60 + turn * 40)
        })
        .collect();
    let lines: String = (0..12).map(|line| format!("<p>Line {line} of {}</p>", line * 7919)).collect();
    format!(
        "<!DOCTYPE html><style>i {{ position: absolute; width: 150px; height: 120px }} p {{ font: 16px/30px serif }}</style>\
         {lines}{boxes}"
    )
}

fn hash_of(grab: &Value) -> Result<PerceptualHash> {
    let text = grab["phash"].as_str().with_context(|| format!("a hash in {grab}"))?;
    PerceptualHash::parse(text).with_context(|| format!("{text} is no hash"))
}

async fn captured(app: &TestApp, turn: u32, options: Value) -> Result<Value> {
    let mut body = options;
    (body["html"], body["width"], body["height"], body["phash"]) =
        (json!(page(turn)), json!(800), json!(600), json!(true));
    let (status, grab) = app.create(body).await?;
    ensure!(status == 200, "{status} {grab}");
    Ok(grab)
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_that_look_alike_have_similar_hashes_over_every_api() -> Result<()> {
    let receiver = Receiver::start(ALLOWED).await?;
    let app = TestApp::start(9, &[("webhooks.allow_http", "true")]).await?;
    let grab = captured(&app, 0, json!({})).await?;
    let hash = hash_of(&grab)?;
    assert_eq!(hash_of(&captured(&app, 0, json!({})).await?)?, hash, "the same page twice");
    for options in [json!({ "scale": 2 }), json!({ "format": "jpeg", "quality": 60 }), json!({ "fit_width": 400 })] {
        let similar = hash_of(&captured(&app, 0, options.clone()).await?)?;
        assert!(similar.distance(hash) <= 4, "{options}: {similar} {hash}");
    }
    let other = hash_of(&captured(&app, 1, json!({})).await?)?;
    assert!(other.distance(hash) > 10, "{other} {hash}");

    let webhook = app.client.post(format!("{}/webhooks", app.base())).bearer_auth(app.live());
    assert_eq!(webhook.json(&json!({ "url": receiver.url() })).send().await?.status(), 201);
    let body = json!({ "html": page(0), "width": 800, "height": 600, "phash": true });
    let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live()).json(&body);
    assert_eq!(request.send().await?.status(), 202);
    let message: Value = serde_json::from_str(&receiver.wait_for(0).await?.body)?;
    assert_eq!(hash_of(&message["data"])?, hash);

    let id = grab["id"].as_str().context("an id")?;
    assert_eq!(hash_of(&app.get(&format!("/grabs/{id}"), app.live()).await?.1)?, hash);
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let mut request = Request::new(GetGrabRequest { id: id.to_owned() });
    request.metadata_mut().insert("authorization", format!("Bearer {}", app.live()).parse()?);
    let over_grpc = GrabServiceClient::new(channel).get_grab(request).await?.into_inner().grab.context("a grab")?;
    assert_eq!(over_grpc.phash, Some(hash.to_string()));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_have_a_hash_if_it_is_asked_for() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let create = async |options: Value| {
        let mut body = options;
        body["url"] = json!("https://example.com/");
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
        anyhow::Ok(request.send().await?.json::<Value>().await?)
    };
    let hash = hash_of(&create(json!({ "phash": true })).await?)?;
    assert_eq!(hash_of(&create(json!({ "phash": true, "format": "webp" })).await?)?, hash);
    for options in [json!({}), json!({ "phash": false })] {
        assert_eq!(create(options).await?.get("phash"), None);
    }
    let refused = create(json!({ "phash": "yes" })).await?;
    assert_eq!(refused["error"]["message"], "`phash` must be true or false; got \"yes\".", "{refused}");
    app.finish().await
}
