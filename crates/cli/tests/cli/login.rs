//! Signing in through the browser, and out again.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use grabd_tests::harness::PASSWORD;
use grabd_tests::programs::{node, root, run};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::rig::{PATIENCE, Rig};

#[tokio::test(flavor = "multi_thread")]
async fn somebody_signs_in_captures_and_signs_out() {
    let rig = Rig::start(3, &[]).await;
    rig.harness.welcome("ada@example.com").await.unwrap();
    let mut login = rig.command();
    let mut login = login.args(["login", "--no-browser"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let address = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the address is told");
            if line.trim_start().starts_with("http") {
                return line.trim().to_owned();
            }
        }
    };
    let url = tokio::time::timeout(PATIENCE, address).await.unwrap();
    let browser = root().join("tests/clients/allow.mjs").display().to_string();
    let person = json!({ "url": url, "email": "ada@example.com", "password": PASSWORD });
    let (is_content, said) = run(&node(), &[browser, person.to_string()]).await.unwrap();
    assert!(is_content && said.contains("the app answered 200"), "{said}");
    let ended = tokio::time::timeout(PATIENCE, login.wait()).await.unwrap().unwrap();
    assert!(ended.success());

    let kept = rig.file("config/grab/credentials.json");
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let usage = rig.run(None, &["usage", "--json"]).await.ends(0).json().remove(0);
    assert_eq!((&usage["environment"], &usage["credits"]["total"]), (&json!("live"), &json!(3)));
    rig.run(None, &[&rig.harness.site.url("/tiny"), "-o", "page.png"]).await.ends(0);

    // Tokens that are about to end are renewed before they are used.
    let text = std::fs::read_to_string(&kept).unwrap();
    let mut stale: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tokens = stale.as_object_mut().unwrap().values_mut().next().unwrap();
    let before = tokens["access"].clone();
    tokens["expires_at"] = json!(0);
    std::fs::write(&kept, stale.to_string()).unwrap();
    rig.run(None, &["usage"]).await.ends(0);
    let renewed: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&kept).unwrap()).unwrap();
    assert_ne!(renewed.as_object().unwrap().values().next().unwrap()["access"], before);

    // What somebody kept of it opens nothing once they have signed out.
    let copy = std::fs::read(&kept).unwrap();
    rig.run(None, &["logout"]).await.ends(0);
    rig.run(None, &["usage"]).await.ends(3);
    std::fs::write(&kept, copy).unwrap();
    let said = rig.run(None, &["usage"]).await.ends(3);
    assert!(said.stderr.contains("grab login"), "{}", said.stderr);
    rig.harness.finish().await.unwrap();
}
