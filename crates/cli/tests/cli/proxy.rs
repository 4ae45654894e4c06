//! The proxy commands.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn proxy_can_be_created_changed_and_deleted() {
    let rig = Rig::without_browser().await;
    let args = ["proxy", "create", "http://8.8.8.8:3128", "--name", "Office", "--username", "me", "--json"];
    let created = rig.test(&args).await.expect_exit(0).json().remove(0);
    assert_eq!((&created["name"], &created["has_login"]), (&"Office".into(), &true.into()), "{created}");
    let id = created["id"].as_str().unwrap();

    let listed = rig.test(&["proxy", "list"]).await.expect_exit(0).text();
    assert!(listed.starts_with("ID") && listed.contains(id) && listed.contains("Office"), "{listed}");
    let shown = rig.test(&["proxy", "show", id]).await.expect_exit(0).text();
    assert!(shown.contains("url          http://8.8.8.8:3128") && shown.contains("last error   -"), "{shown}");

    let renamed = rig.test(&["proxy", "update", id, "--name", "Vienna"]).await.expect_exit(0).text();
    assert!(renamed.contains("name         Vienna") && renamed.contains("login        yes"), "{renamed}");
    let open = rig.test(&["proxy", "update", id, "--no-login"]).await.expect_exit(0).text();
    assert!(open.contains("login        no"), "{open}");
    rig.test(&["proxy", "update", id]).await.expect_exit(2);
    let deleted = rig.test(&["proxy", "delete", id]).await.expect_exit(0);
    assert!(deleted.stderr.contains("Deleted the proxy"), "{}", deleted.stderr);
    let missing = rig.test(&["proxy", "show", id]).await.expect_exit(1);
    assert!(missing.stderr.contains("`grab proxy list` shows"), "{}", missing.stderr);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn password_is_read_from_stdin_and_never_printed() {
    let rig = Rig::without_browser().await;
    let mut command = rig.command();
    command.env("GRAB_API_KEY", rig.harness.test());
    command.args(["proxy", "create", "socks5://8.8.8.8:1080", "--name", "Office"]);
    command.args(["--username", "me", "--password-stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hidden word\n").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("login        yes") && !text.contains("hidden"), "{text}");
    let refused = rig.test(&["proxy", "create", "http://127.0.0.1:3128", "--name", "Office"]).await;
    assert_ne!(refused.code, 0, "{}", refused.stderr);
    rig.harness.finish().await.unwrap();
}
