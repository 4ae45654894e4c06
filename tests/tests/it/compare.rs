//! `compare_to`: what changed since an earlier image, through the whole service.

use anyhow::{Context, Result, ensure};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_proto::v1::GetGrabRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_tests::agent::{Agent, MODERN};
use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::receiver::Receiver;
use grabd_tests::{leftovers, pixels};
use serde_json::{Value, json};
use tonic::Request;
use tonic::transport::Endpoint;

/// An id that no grab has.
const UNKNOWN: &str = "01993e1c-7b1a-7000-8000-0123456789ab";
const BLUE: [u8; 3] = [20, 40, 200];
const OUTLINE: [u8; 3] = [0xd6, 0x00, 0x6c];

/// A page of 40 different lines, a button and 10 more lines, with a banner of this height at its top.
fn page(banner: u32, button: [u8; 3]) -> String {
    let lines = |from: u32, to: u32| (from..to).map(|line| format!("<p>Line {line} of {}</p>", line * 7919)).collect();
    let (above, below): (String, String) = (lines(0, 40), lines(40, 50));
    let [red, green, blue] = button;
    format!(
        "<!DOCTYPE html><style>* {{ margin: 0 }} p {{ font: 16px/24px monospace; height: 24px }}</style>\
         <div style='height:{banner}px;background:#246'></div>{above}\
         <div style='margin:20px;width:160px;height:48px;background:rgb({red},{green},{blue})'></div>{below}"
    )
}

fn id(grab: &Value) -> Result<&str> {
    grab["id"].as_str().context("an id")
}

async fn create(app: &TestApp, key: &str, query: &str, body: &Value) -> Result<(u16, Value)> {
    let request = app.client.post(format!("{}/grabs{query}", app.base())).bearer_auth(key).json(body);
    let response = request.send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

async fn delete(app: &TestApp, key: &str, grab: &Value) -> Result<()> {
    let url = format!("{}/grabs/{}", app.base(), id(grab)?);
    ensure!(app.client.delete(url).bearer_auth(key).send().await?.status() == 204, "{grab} was not deleted");
    Ok(())
}

/// Captures a document with the live key.
async fn captured(app: &TestApp, html: &str, options: Value) -> Result<Value> {
    let mut body = options;
    (body["html"], body["width"], body["full_page"]) = (json!(html), json!(800), json!(true));
    let (status, grab) = app.create(body).await?;
    ensure!(status == 200, "{status} {grab}");
    Ok(grab)
}

async fn credits(app: &TestApp) -> Result<(Value, Value)> {
    let (_, usage) = app.get("/usage", app.live()).await?;
    Ok((usage["credits"]["total"].clone(), usage["credits"]["held"].clone()))
}

async fn stored_bytes(app: &TestApp) -> Result<u64> {
    Ok(app.service.store().grabs().stored_bytes(app.team.team).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn banner_and_button_are_found_and_shown_over_every_api() -> Result<()> {
    let receiver = Receiver::start(ALLOWED).await?;
    let app = TestApp::start(9, &[("webhooks.allow_http", "true")]).await?;
    let webhook = app.client.post(format!("{}/webhooks", app.base())).bearer_auth(app.live());
    let before = captured(&app, &page(0, [200, 0, 0]), json!({})).await?;
    assert_eq!(webhook.json(&json!({ "url": receiver.url() })).send().await?.status(), 201);
    let before_bytes = stored_bytes(&app).await?;
    // Webhooks tell of asynchronous captures.
    let body = json!({ "html": page(37, BLUE), "width": 800, "full_page": true, "compare_to": id(&before)? });
    let (status, queued) = create(&app, app.live(), "?async=true", &body).await?;
    assert_eq!((status, queued.get("difference")), (202, None), "{queued}");
    let request = app.client.get(format!("{}/grabs/{}", app.base(), id(&queued)?)).bearer_auth(app.live());
    let grab: Value = request.header("prefer", "wait=25").send().await?.json().await?;
    assert_eq!(grab["status"], "done", "{grab}");

    let difference = &grab["difference"];
    assert_eq!(difference["compared_to"], before["id"]);
    let regions = json!([
        { "x": 0, "y": 0, "width": 800, "height": 48 },
        // From 37 + 40 * 24 + 20, in cells of 16 pixels.
        { "x": 16, "y": 1008, "width": 176, "height": 64 },
    ]);
    assert_eq!(difference["regions"], regions, "{grab}");
    let (width, height) =
        (grab["image_width"].as_f64().context("a width")?, grab["image_height"].as_f64().context("a height")?);
    let ratio = (800.0 * 48.0 + 176.0 * 64.0) / (width * height);
    assert!((difference["ratio"].as_f64().context("a ratio")? - ratio).abs() < 1e-5, "{difference} {ratio}");

    let url = difference["image_url"].as_str().context("an image")?;
    let file = &grab["files"][0];
    assert_eq!(
        (&file["kind"], &file["url"], &file["media_type"]),
        (&json!("difference"), &json!(url), &json!("image/png"))
    );
    let response = app.client.get(url).send().await?.error_for_status()?;
    assert_eq!(response.headers()["content-type"], "image/png");
    let shown = response.bytes().await?;
    assert_eq!(file["bytes"], json!(shown.len()));
    let shown = pixels::decode(&shown);
    assert_eq!((f64::from(shown.width()), f64::from(shown.height())), (width, height));
    assert_eq!(shown.get_pixel(100, 1040).0, BLUE, "the button keeps its colour");
    assert_eq!(shown.get_pixel(14, 1040).0, OUTLINE);
    assert!(pixels::is_colour(&shown, (700, 1040), [255; 3], 0));
    let image_bytes = grab["bytes"].as_u64().context("bytes")?;
    let file_bytes = file["bytes"].as_u64().context("bytes")?;
    assert_eq!(stored_bytes(&app).await?, before_bytes + image_bytes + file_bytes);

    let path = format!("/grabs/{}", id(&grab)?);
    assert_eq!(app.get(&path, app.live()).await?.1["difference"], *difference);
    // The end and the change are two messages, in any order.
    let mut events = Vec::new();
    for number in [0, 1] {
        let message: Value = serde_json::from_str(&receiver.wait_for(number).await?.body)?;
        assert_eq!(message["data"]["difference"], *difference, "{message}");
        events.push(message["type"].as_str().context("a type")?.to_owned());
    }
    events.sort_unstable();
    assert_eq!(events, ["grab.changed", "grab.done"]);
    let agent = Agent::new(&app, app.live(), MODERN);
    let called = agent.call("get_grab", json!({ "id": id(&grab)?, "include_image": false })).await?;
    assert_eq!(called.structured()?["difference"], *difference);
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let mut request = Request::new(GetGrabRequest { id: id(&grab)?.to_owned() });
    request.metadata_mut().insert("authorization", format!("Bearer {}", app.live()).parse()?);
    let over_grpc = GrabServiceClient::new(channel).get_grab(request).await?.into_inner().grab;
    let over_grpc = over_grpc.and_then(|grab| grab.difference).context("a difference")?;
    assert_eq!((over_grpc.image_url.as_deref(), over_grpc.regions.len()), (Some(url), 2));

    delete(&app, app.live(), &grab).await?;
    assert_eq!(app.client.get(url).send().await?.status(), 404);
    let (_, after) = app.get(&path, app.live()).await?;
    assert_eq!((after["difference"].get("image_url"), &after["difference"]["regions"]), (None, &regions));
    assert_eq!(stored_bytes(&app).await?, before_bytes);
    assert_eq!(leftovers::files_below(&app.data_dir().join("images"))?.len(), 1, "only the earlier image is left");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_page_has_no_regions_and_no_image_of_the_difference() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let before = captured(&app, &page(0, BLUE), json!({})).await?;
    let same = captured(&app, &page(0, BLUE), json!({ "compare_to": id(&before)?, "max_age": 3600 })).await?;
    assert_ne!(same["id"], before["id"]);
    assert_eq!(same["difference"], json!({ "compared_to": before["id"], "ratio": 0.0, "regions": [] }));
    assert_eq!((same.get("files"), before.get("difference")), (None, None));
    assert_eq!(credits(&app).await?, (json!(1), json!(0)));
    // Also with an image of another format, which is not the same file.
    let lossy = captured(&app, &page(0, BLUE), json!({ "compare_to": id(&before)?, "format": "jpeg" })).await?;
    assert_eq!(lossy["difference"]["ratio"], json!(0.0), "{lossy}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_of_the_earlier_image_fails_the_capture_uncharged() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let (before, _) = app.capture("/tiny", json!({})).await?;
    assert_eq!(credits(&app).await?, (json!(2), json!(0)));
    let body = json!({ "url": app.site.url("/held/tiny"), "compare_to": id(&before)? });
    let mut capture = Box::pin(app.create_refused(body));
    let deletion = async {
        app.site.wait_for_hits("/held/tiny", 1).await;
        delete(&app, app.live(), &before).await?;
        app.client.post(app.site.url("/held/tiny")).send().await?;
        anyhow::Ok(())
    };
    tokio::select! {
        biased;
        ended = &mut capture => panic!("the capture ended too early: {ended:?}"),
        deleted = deletion => deleted?,
    }
    let failed = capture.await?;
    assert_eq!(failed.summary(), (500, "render_failed", "request"));
    assert!(failed.message.contains("was deleted before it was compared"), "{failed:?}");
    assert_eq!(credits(&app).await?, (json!(2), json!(0)));
    let (_, list) = app.get("/grabs", app.live()).await?;
    let failed = &list["data"][0];
    assert_eq!(
        (&failed["status"], &failed["error_code"], &failed["error_cause"]),
        (&json!("failed"), &json!("render_failed"), &json!("request")),
        "{failed}"
    );
    assert_eq!((&failed["image_sha256"], failed.get("files"), failed.get("difference")), (&Value::Null, None, None));
    assert_eq!(stored_bytes(&app).await?, 0);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn grabs_without_an_image_of_the_same_team_and_environment_are_refused() -> Result<()> {
    let app = TestApp::start_without_browser(3, &[]).await?;
    let store = app.service.store();
    let other = accounts::create_team(store, "another", 1, Clock::system().now()).await?;
    let url = "https://example.com/";
    let (_, theirs) = create(&app, other.test.expose(), "", &json!({ "url": url })).await?;
    let (_, placeholder) = create(&app, app.test(), "", &json!({ "url": url })).await?;
    let (_, deleted) = create(&app, app.test(), "", &json!({ "url": url })).await?;
    delete(&app, app.test(), &deleted).await?;
    let (status, pending) = create(&app, app.live(), "?async=true", &json!({ "url": app.site.url("/tiny") })).await?;
    assert_eq!(status, 202, "{pending}");
    create(&app, app.test(), "", &json!({ "url": "https://broken.test/" })).await?;
    let (_, list) = app.get("/grabs?status=failed", app.test()).await?;
    let failed = &list["data"][0];
    let refused = async |key: &str, earlier: &Value| {
        let (status, answer) = create(&app, key, "", &json!({ "url": url, "compare_to": earlier })).await?;
        ensure!((status, &answer["error"]["code"]) == (400, &json!("bad_request")), "{earlier}: {answer}");
        Ok(answer["error"]["message"].as_str().context("a message")?.to_owned())
    };
    for (key, earlier, expected) in [
        (app.test(), &json!("latest"), "`compare_to` must be the id of a grab, such as"),
        (app.test(), &json!(7), "`compare_to` must be the id of a grab, such as"),
        (app.live(), &placeholder["id"], "the id of a grab of the same team and environment"),
        (app.test(), &pending["id"], "the id of a grab of the same team and environment"),
        (app.live(), &pending["id"], ", which is pending"),
        (app.test(), &failed["id"], ", which is failed"),
        (app.test(), &deleted["id"], ", whose image was deleted"),
    ] {
        let message = refused(key, earlier).await?;
        assert!(message.starts_with("`compare_to` must be ") && message.contains(expected), "{earlier}: {message}");
    }
    // Nobody learns whether another team has a grab.
    let unknown = refused(app.test(), &json!(UNKNOWN)).await?;
    let foreign = refused(app.test(), &theirs["id"]).await?;
    assert_eq!(foreign.replace(id(&theirs)?, UNKNOWN), unknown);
    assert_eq!(refused(other.test.expose(), &placeholder["id"]).await?.replace(id(&placeholder)?, UNKNOWN), unknown);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_are_compared_too() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let first = json!({ "url": "https://example.com/one" });
    let (_, before) = create(&app, app.test(), "", &first).await?;
    let mut again = first.clone();
    again["compare_to"] = before["id"].clone();
    let (status, same) = create(&app, app.test(), "", &again).await?;
    assert_eq!(status, 200, "{same}");
    assert_eq!(same["difference"], json!({ "compared_to": before["id"], "ratio": 0.0, "regions": [] }));
    // Placeholders show their size.
    again["height"] = json!(700);
    let (status, other) = create(&app, app.test(), "", &again).await?;
    assert_eq!(status, 200, "{other}");
    let difference = &other["difference"];
    assert!(difference["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{difference}");
    let path = difference["image_url"].as_str().context("an image")?;
    assert_eq!((path.starts_with("/f/"), &other["files"][0]["url"]), (true, &json!(path)));
    let url = format!("{}{path}", app.service.public_url());
    let image = app.client.get(&url).send().await?.error_for_status()?.bytes().await?;
    assert_eq!(other["files"][0]["bytes"], json!(image.len()));
    assert_eq!(pixels::decode(&image).dimensions(), (1280, 700));
    // The earlier request is still known when its image is deleted.
    delete(&app, app.test(), &before).await?;
    assert_eq!(app.client.get(&url).send().await?.status(), 200);
    delete(&app, app.test(), &other).await?;
    assert_eq!(app.client.get(&url).send().await?.status(), 404);
    app.finish().await
}
