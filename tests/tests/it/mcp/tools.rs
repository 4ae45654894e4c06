//! Arguments and results of the tools.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use grabd_tests::agent::{Agent, LEGACY, MODERN, McpResponse};
use grabd_tests::harness::{REFUSED, TestApp};
use serde_json::{Value, json};

const UNKNOWN_ID: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

/// Calls tools and validates every result against the listed output schema.
struct SchemaCheckedAgent<'a> {
    agent: Agent<'a>,
    outputs: HashMap<String, Value>,
}

impl<'a> SchemaCheckedAgent<'a> {
    async fn new(app: &'a TestApp, key: &str, version: &'a str) -> Result<Self> {
        let agent = Agent::new(app, key, version);
        let listed = agent.ask("tools/list", json!({})).await?;
        let tools = listed.body["result"]["tools"].as_array().context("tools")?;
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        let outputs = tools.iter().map(|tool| (name(tool), tool["outputSchema"].clone())).collect();
        Ok(Self { agent, outputs })
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<McpResponse> {
        let answer = self.agent.call(tool, arguments).await?;
        let result = answer.result()?;
        let structured = &result["structuredContent"];
        let validator = jsonschema::validator_for(&self.outputs[tool])?;
        let problems: Vec<String> = validator.iter_errors(structured).map(|error| error.to_string()).collect();
        ensure!(problems.is_empty(), "{tool}: {problems:?} in {structured}");
        let texts = result["content"].as_array().context("content")?.iter().filter_map(|block| block["text"].as_str());
        let same: Vec<Value> = texts.map(serde_json::from_str).collect::<Result<_, _>>()?;
        ensure!(same == [structured.clone()], "the text block differs: {same:?}");
        ensure!(answer.body["result"].to_string().len() < 900_000, "{tool}");
        Ok(answer)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_results_match_their_schema_in_every_era() -> Result<()> {
    let app = TestApp::start(20, &[]).await?;
    let page = app.site.url("/tiny");
    for version in LEGACY.into_iter().chain([MODERN]) {
        for (key, environment) in [(app.live(), "live"), (app.test(), "test")] {
            let tools = SchemaCheckedAgent::new(&app, key, version).await?;
            let made = tools.call("create_grab", json!({ "url": page, "width": 800, "height": 600 })).await?;
            let grab = made.structured()?;
            assert_eq!((&grab["status"], &grab["width"], &grab["height"]), (&json!("done"), &json!(800), &json!(600)));
            let kinds: Vec<_> = made.result()?["content"]
                .as_array()
                .context("content")?
                .iter()
                .map(|block| block["type"].clone())
                .collect();
            assert_eq!(kinds, ["image", "resource_link", "text"]);
            let link = &made.result()?["content"][1];
            assert_eq!(
                (&link["uri"], &link["mimeType"], &link["size"]),
                (&grab["image_url"], &json!("image/png"), &grab["bytes"])
            );
            let file = app.client.get(link["uri"].as_str().context("an absolute address")?).send().await?;
            assert_eq!(file.bytes().await?.len() as u64, grab["bytes"].as_u64().context("bytes")?);

            let id = &grab["id"];
            let plain = tools.call("get_grab", json!({ "id": id })).await?;
            assert_eq!(plain.structured()?, grab, "get_grab returns what create_grab did");
            assert_eq!(plain.result()?["content"][0]["type"], "resource_link");
            let pictured = tools.call("get_grab", json!({ "id": id, "include_image": true })).await?;
            assert_eq!(pictured.result()?["content"][0], made.result()?["content"][0]);
            let quiet = tools.call("create_grab", json!({ "url": page, "include_image": false })).await?;
            assert_eq!(quiet.result()?["content"][0]["type"], "resource_link");

            let list = tools.call("list_grabs", json!({ "limit": 1, "status": "done" })).await?;
            let list = list.structured()?;
            assert_eq!((&list["data"][0]["id"], &list["has_more"]), (&quiet.structured()?["id"], &json!(true)));
            let next = tools.call("list_grabs", json!({ "limit": 1, "starting_after": list["data"][0]["id"] })).await?;
            assert_eq!(&next.structured()?["data"][0], grab);
            let usage = tools.call("get_usage", json!({})).await?;
            assert_eq!(usage.structured()?["environment"], environment);
            let summary = tools.call("get_pricing", json!({})).await?;
            assert_eq!(summary.structured()?["pricing"]["per_grab_usd"], json!(0.002));
            let full = tools.call("get_pricing", json!({ "detail": "full" })).await?;
            let size = |answer: &McpResponse| answer.body.to_string().len();
            assert!(size(&summary) < size(&full), "the summary is the default");
            let one = tools.call("get_pricing", json!({ "provider": "provider_b" })).await?;
            assert_eq!(one.structured()?["comparison"]["providers"].as_array().map(Vec::len), Some(2));
            // A live monitor would spend a credit at once.
            if environment == "test" {
                let listed = tools.call("monitor", json!({ "do": "list" })).await?;
                let known = listed.structured()?["data"].as_array().map_or(0, Vec::len);
                let monitor = json!({ "capture": { "url": page }, "every": "30d" });
                let created = tools.call("monitor", json!({ "do": "create", "monitor": monitor })).await?;
                let id = &created.structured()?["id"];
                let runs = tools.call("monitor", json!({ "do": "runs", "id": id })).await?;
                assert_eq!(runs.structured()?["has_more"], json!(false));
                let listed = tools.call("monitor", json!({ "do": "list" })).await?;
                assert_eq!(listed.structured()?["data"].as_array().map(Vec::len), Some(known + 1));
                assert_eq!(&listed.structured()?["data"][0]["id"], id);
            }
        }
    }
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"], json!({"subscription": 0, "prepaid": 12, "total": 12, "held": 0}));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn site_is_captured_and_its_images_are_returned() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    let page = app.site.url("/tiny");
    // The live capture is charged, and the placeholder is not.
    for key in [app.live(), app.test()] {
        let agent = Agent::new(&app, key, MODERN);
        let arguments = json!({ "url": page, "max_depth": 0, "capture": { "format": "jpeg" } });
        let mut answer = agent.call("capture_site", arguments).await?;
        // On a slow machine, a call does not wait long enough.
        for _ in 0..3 {
            if answer.structured()?["finished"] == true {
                break;
            }
            answer = agent.call("capture_site", json!({ "id": answer.structured()?["id"] })).await?;
        }
        let job = answer.structured()?;
        assert_eq!((&job["state"], &job["pages"]["captured"]), (&json!("done"), &json!(1)), "{job}");
        assert_eq!(
            (job["images"].as_array().map(Vec::len), &job["images"][0]["url"]),
            (Some(1), &json!(page)),
            "{job}"
        );
        let image = job["images"][0]["image_url"].as_str().context("an address")?;
        ensure!(app.client.get(image).send().await?.status() == 200, "{image}");
        let (_, usage) = app.get("/usage", app.live()).await?;
        assert_eq!(usage["credits"]["total"], 4);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_errors_have_a_code_and_a_hint() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    for version in [LEGACY[1], MODERN] {
        let (live, test) = (Agent::new(&app, app.live(), version), Agent::new(&app, app.test(), version));
        let url = app.site.url("/tiny");
        let private = format!("http://{REFUSED}:8801/");
        // Tool, arguments, error code, and parts of the message.
        let with = |name: &str, value: Value| json!({ "url": url, name: value });
        let cases: Vec<(&str, Value, &str, &[&str])> = vec![
            ("create_grab", json!({}), "bad_request", &["`url`", "must be present"]),
            ("create_grab", json!({ "url": 5 }), "bad_request", &["`url`", "got 5"]),
            ("create_grab", json!({ "url": "ftp://a.example/" }), "bad_request", &["`url`", "http(s)"]),
            ("create_grab", json!({ "url": private }), "ssrf_detected", &["`url`"]),
            ("create_grab", with("width", json!(100)), "invalid_viewport", &["`width`", "got 100", "from 320 to 1920"]),
            (
                "create_grab",
                with("height", json!("600")),
                "invalid_viewport",
                &["`height`", "got \"600\"", "from 240 to 1080"],
            ),
            ("create_grab", with("format", json!("gif")), "bad_request", &["`format`", "got \"gif\"", "\"webp\""]),
            (
                "create_grab",
                with("full_page", json!("yes")),
                "bad_request",
                &["`full_page`", "got \"yes\"", "true or false"],
            ),
            (
                "create_grab",
                with("delay_ms", json!(10_001)),
                "bad_request",
                &["`delay_ms`", "got 10001", "from 0 to 10000"],
            ),
            ("create_grab", with("selector", json!("")), "bad_request", &["`selector`"]),
            ("create_grab", with("async", json!("later")), "bad_request", &["`async`", "got \"later\""]),
            ("create_grab", with("include_image", json!(1)), "bad_request", &["`include_image`", "got 1"]),
            ("create_grab", with("widht", json!(800)), "bad_request", &["`widht`", "width, height"]),
            ("create_grab", with("idempotency_key", json!(7)), "idempotency_mismatch", &["Idempotency-Key"]),
            ("get_grab", json!({}), "bad_request", &["`id`"]),
            ("get_grab", json!({ "id": UNKNOWN_ID }), "not_found", &["No grab"]),
            ("get_grab", json!({ "id": "no id" }), "not_found", &["No grab"]),
            ("list_grabs", json!({ "limit": 0 }), "bad_request", &["`limit`", "got 0", "from 1 to 100"]),
            ("list_grabs", json!({ "limit": "ten" }), "bad_request", &["`limit`", "got \"ten\""]),
            ("list_grabs", json!({ "status": "lost" }), "bad_request", &["`status`", "\"pending\""]),
            ("list_grabs", json!({ "starting_after": UNKNOWN_ID }), "bad_request", &["`starting_after`"]),
            ("get_usage", json!({ "a": 1 }), "bad_request", &["`a`", "no arguments"]),
            ("get_pricing", json!({ "provider": "provider_z" }), "bad_request", &["`provider`"]),
            ("get_pricing", json!({ "detail": 5 }), "bad_request", &["`detail`"]),
            ("capture_site", json!({}), "bad_request", &["`url`", "`sitemap`"]),
            ("capture_site", with("max_pages", json!(0)), "bad_request", &["`max_pages`", "got 0", "from 1 to"]),
            ("capture_site", with("capture", json!({ "width": "1" })), "invalid_viewport", &["width"]),
            ("capture_site", with("id", json!(UNKNOWN_ID)), "bad_request", &["`url`", "left out"]),
            ("capture_site", json!({ "id": UNKNOWN_ID }), "not_found", &["No site job"]),
        ];
        for (tool, arguments, code, named) in cases {
            let failure = live.call(tool, arguments.clone()).await?.failure()?;
            assert_eq!(failure["error"]["code"], code, "{arguments}: {failure}");
            let message = failure["error"]["message"].as_str().context("a message")?;
            assert!(named.iter().all(|part| message.contains(part)), "{arguments}: {message}");
            assert!(failure["hint"].as_str().is_some_and(|hint| hint.len() > 20), "{failure}");
        }
        for (host, code) in [
            ("blocked", "render_blocked"),
            ("broken", "render_failed"),
            ("exhausted", "credits_exhausted"),
            ("busy", "queue_limit_exceeded"),
        ] {
            let failure =
                test.call("create_grab", json!({ "url": format!("http://{host}.test/") })).await?.failure()?;
            assert_eq!(failure["error"]["code"], code);
        }
        // A failed capture is a tool error. Read later, it is a failed grab.
        let failure = live.call("create_grab", json!({ "url": app.site.url("/status/403") })).await?.failure()?;
        assert_eq!(failure["error"]["code"], "render_blocked");
        let failed = live.call("list_grabs", json!({ "status": "failed", "limit": 1 })).await?;
        let grab = live
            .call("get_grab", json!({ "id": failed.structured()?["data"][0]["id"], "include_image": true }))
            .await?;
        let grab = grab.structured()?;
        assert_eq!(
            (&grab["status"], &grab["error_message"], &grab["error_code"], &grab["error_cause"]),
            (&json!("failed"), &failure["error"]["message"], &failure["error"]["code"], &failure["cause"])
        );
        let none = live.ask("tools/call", json!({ "name": "get_usage" })).await?;
        assert_eq!(none.result()?["isError"], false, "missing arguments are allowed");
        let text = live.ask("tools/call", json!({ "name": "get_usage", "arguments": "none" })).await?.failure()?;
        assert_eq!(text["error"]["message"], "`arguments` must be an object; got \"none\".");
    }
    let live = Agent::new(&app, app.live(), MODERN);
    assert!(live.call("create_grab", json!({ "url": app.site.url("/tiny") })).await?.result().is_ok());
    let failure = live.call("create_grab", json!({ "url": app.site.url("/tiny") })).await?.failure()?;
    assert_eq!(
        (&failure["error"]["code"], failure["hint"].as_str().is_some_and(|hint| hint.contains("get_usage"))),
        (&json!("credits_exhausted"), true)
    );
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creates_make_separate_grabs_and_one_key_makes_one() -> Result<()> {
    let app = TestApp::start(30, &[]).await?;
    let agent = Agent::new(&app, app.live(), MODERN);
    let calls = (0..20).map(|n| agent.call("create_grab", json!({ "url": app.site.url("/tiny"), "width": 400 + n })));
    let mut ids = Vec::new();
    for (at, answer) in join_all(calls).await.into_iter().enumerate() {
        let answer = answer?;
        assert_eq!(answer.structured()?["width"], json!(400 + at));
        ids.push(answer.structured()?["id"].as_str().context("an id")?.to_owned());
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20);

    let keyed = json!({ "url": app.site.url("/tiny"), "idempotency_key": "0f3c" });
    let first = agent.call("create_grab", keyed.clone()).await?;
    let again = agent.call("create_grab", keyed.clone()).await?;
    assert_eq!(first.structured()?, again.structured()?);
    // The key is shared between MCP and REST.
    let rest = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.live());
    let rest: Value = rest
        .header("idempotency-key", "0f3c")
        .json(&json!({ "url": app.site.url("/tiny") }))
        .send()
        .await?
        .json()
        .await?;
    assert_eq!(&rest["id"], &first.structured()?["id"]);
    let other = agent.call("create_grab", json!({ "url": app.site.url("/tall"), "idempotency_key": "0f3c" })).await?;
    assert_eq!(other.failure()?["error"]["code"], "idempotency_mismatch");
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"]["total"], json!(30 - 21));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn asynchronous_grab_can_be_read_later() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let live = Agent::new(&app, app.live(), MODERN);
    let queued = live.call("create_grab", json!({ "url": app.site.url("/slow/700"), "async": true })).await?;
    assert_eq!(
        (&queued.structured()?["status"], &queued.structured()?["image_url"]),
        (&json!("pending"), &Value::Null)
    );
    assert_eq!(queued.result()?["content"].as_array().map(Vec::len), Some(1), "there is no image yet");
    let id = queued.structured()?["id"].clone();
    let end = app.client.get(format!("{}/grabs/{}", app.base(), id.as_str().context("id")?)).bearer_auth(app.live());
    end.header("prefer", "wait=25").send().await?.error_for_status()?;
    let done = live.call("get_grab", json!({ "id": id, "include_image": true })).await?;
    assert_eq!(
        (&done.structured()?["status"], &done.result()?["content"][0]["type"]),
        (&json!("done"), &json!("image"))
    );
    // Other environments do not see the grab.
    let test = Agent::new(&app, app.test(), MODERN);
    assert_eq!(test.call("get_grab", json!({ "id": id })).await?.failure()?["error"]["code"], "not_found");
    // Placeholders are done at once, even with `async`.
    let placeholder = test.call("create_grab", json!({ "url": "https://example.com/", "async": true })).await?;
    assert_eq!(placeholder.structured()?["status"], "done");
    app.finish().await
}
