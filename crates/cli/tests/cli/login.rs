//! Sign-in through the browser, and sign-out.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use grabd_tests::harness::{ALLOWED, PASSWORD};
use grabd_tests::programs::{node, root, run};
use grabd_tests::visitor::Visitor;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::rig::{Rig, TIMEOUT};

/// Signs in as a member, who allows what is asked for.
async fn sign_in(rig: &Rig, options: &[&str]) {
    let mut login = rig.command();
    login.args(["login", "--no-browser"]).args(options);
    let mut login = login.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let address = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the URL is printed");
            if line.trim_start().starts_with("http") {
                return line.trim().to_owned();
            }
        }
    };
    let url = tokio::time::timeout(TIMEOUT, address).await.unwrap();
    let browser = root().join("tests/clients/allow.mjs").display().to_string();
    let user = json!({ "url": url, "email": "ada@example.com", "password": PASSWORD });
    let (is_success, text) = run(&node(), &[browser, user.to_string()]).await.unwrap();
    assert!(is_success && text.contains("the app answered 200"), "{text}");
    let status = tokio::time::timeout(TIMEOUT, login.wait()).await.unwrap().unwrap();
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn login_refreshes_tokens_and_logout_revokes_them() {
    let rig = Rig::start(3, &[]).await;
    rig.harness.create_member("ada@example.com").await.unwrap();
    sign_in(&rig, &[]).await;

    let stored = rig.file("config/grab/credentials.json");
    assert_eq!(std::fs::metadata(&stored).unwrap().permissions().mode() & 0o777, 0o600);
    let usage = rig.run(None, &["usage", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!((&usage["environment"], &usage["credits"]["total"]), (&json!("live"), &json!(3)));
    rig.run(None, &[&rig.harness.site.url("/tiny"), "-o", "page.png"]).await.expect_exit(0);

    // Expiring tokens are refreshed before use.
    let text = std::fs::read_to_string(&stored).unwrap();
    let mut stale: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tokens = stale.as_object_mut().unwrap().values_mut().next().unwrap();
    let before = tokens["access"].clone();
    tokens["expires_at"] = json!(0);
    std::fs::write(&stored, stale.to_string()).unwrap();
    rig.run(None, &["usage"]).await.expect_exit(0);
    let renewed: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&stored).unwrap()).unwrap();
    assert_ne!(renewed.as_object().unwrap().values().next().unwrap()["access"], before);

    // A copy of the tokens is useless after the sign-out.
    let copy = std::fs::read(&stored).unwrap();
    rig.run(None, &["logout"]).await.expect_exit(0);
    rig.run(None, &["usage"]).await.expect_exit(3);
    std::fs::write(&stored, copy).unwrap();
    let output = rig.run(None, &["usage"]).await.expect_exit(3);
    assert!(output.stderr.contains("grab login"), "{}", output.stderr);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn login_asks_for_webhooks_and_deletion_only_with_manage_and_replaces_the_former_sign_in() {
    let rig = Rig::start(1, &[("webhooks.allow_http", "true")]).await;
    rig.harness.create_member("ada@example.com").await.unwrap();
    let url = format!("http://{ALLOWED}/hook");
    sign_in(&rig, &[]).await;
    let status = rig.run(None, &["auth", "status"]).await.expect_exit(0).text();
    assert!(status.lines().any(|line| line == "scope        grabs"), "{status}");
    for args in
        [&["webhooks", "list"][..], &["webhooks", "create", &url], &["delete", "01990a1b-2c3d-7e4f-8a5b-6c7d8e9f0a1b"]]
    {
        let refused = rig.run(None, args).await.expect_exit(3);
        assert!(
            refused.stderr.contains("`manage`") && refused.stderr.contains("grab login --manage"),
            "{args:?}: {}",
            refused.stderr
        );
    }
    let stored = rig.file("config/grab/credentials.json");
    let former = std::fs::read(&stored).unwrap();
    sign_in(&rig, &["--manage"]).await;
    let status = rig.run(None, &["auth", "status", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(status["scope"], "grabs manage");
    let created = rig.run(None, &["webhooks", "create", &url, "--json"]).await.expect_exit(0);
    assert!(created.stderr.contains("grab logout"), "{}", created.stderr);
    let id = created.json()[0]["id"].as_str().unwrap().to_owned();
    rig.live(&["webhooks", "show", &id]).await.expect_exit(0);
    assert_eq!(rig.live(&["webhooks", "create", &url]).await.expect_exit(0).stderr, "");
    // The webhook ends with the sign-in.
    let latest = std::fs::read(&stored).unwrap();
    std::fs::write(&stored, former).unwrap();
    rig.run(None, &["usage"]).await.expect_exit(3);
    std::fs::write(&stored, latest).unwrap();
    rig.run(None, &["logout"]).await.expect_exit(0);
    rig.live(&["webhooks", "show", &id]).await.expect_exit(1);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn login_by_a_code_needs_no_browser_on_this_machine() {
    let rig = Rig::start(1, &[]).await;
    rig.harness.create_member("ada@example.com").await.unwrap();
    let mut login = rig.command();
    // As over SSH, without an option.
    let mut login =
        login.arg("login").env("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22").stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let code = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the code is printed");
            if let Some((_, code)) = line.split_once("enter the code ") {
                return code.trim_end_matches(':').to_owned();
            }
        }
    };
    let code = tokio::time::timeout(TIMEOUT, code).await.unwrap();
    let mut ada = Visitor::new(&rig.harness);
    ada.sign_in("ada@example.com", PASSWORD, "/device").await.unwrap();
    let page = ada.get("/device").await.unwrap();
    let token = page.hidden_field("form_token").unwrap();
    let consent = ada.post("/device", &[("form_token", &token), ("user_code", &code)]).await.unwrap();
    assert_eq!(ada.decide(&consent, "allow", &[]).await.unwrap().status, 303);
    let status = tokio::time::timeout(TIMEOUT, login.wait()).await.unwrap().unwrap();
    assert!(status.success());
    let usage = rig.run(None, &["usage", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(usage["environment"], "live");
    rig.run(None, &["logout"]).await.expect_exit(0);
    rig.harness.finish().await.unwrap();
}
