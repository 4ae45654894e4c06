//! The webhook commands.

use grabd_tests::harness::ALLOWED;

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn webhook_can_be_created_changed_tested_and_deleted() {
    let rig = Rig::start(1, &[("webhooks.allow_http", "true")]).await;
    let url = format!("http://{ALLOWED}/hook");
    let created =
        rig.live(&["webhooks", "create", &url, "--event", "grab.done", "--json"]).await.expect_exit(0).json().remove(0);
    assert!(created["secret"].as_str().unwrap().starts_with("whsec_"));
    let id = created["id"].as_str().unwrap();
    let listed = rig.live(&["webhooks", "list"]).await.expect_exit(0).text();
    assert!(listed.contains(id) && listed.contains("grab.done") && !listed.contains("whsec_"), "{listed}");
    rig.live(&["webhooks", "update", id]).await.expect_exit(2);
    let changed =
        rig.live(&["webhooks", "update", id, "--description", "prod", "--disable", "--json"]).await.expect_exit(0);
    assert_eq!(changed.json()[0]["status"], "disabled");
    rig.live(&["webhooks", "update", id, "--enable"]).await.expect_exit(0);
    let rotated = rig.live(&["webhooks", "rotate-secret", id, "--json"]).await.expect_exit(0).json().remove(0);
    assert_ne!(rotated["secret"], created["secret"]);
    let test = rig.live(&["webhooks", "test", id, "--json"]).await.expect_exit(0).json().remove(0);
    let deliveries = rig.live(&["webhooks", "deliveries", id]).await.expect_exit(0).text();
    assert!(deliveries.contains(test["id"].as_str().unwrap()) && deliveries.contains("webhook.test"), "{deliveries}");
    rig.live(&["webhooks", "redeliver", id, test["id"].as_str().unwrap()]).await.expect_exit(0);
    rig.live(&["webhooks", "delete", id]).await.expect_exit(0);
    rig.live(&["webhooks", "show", id]).await.expect_exit(1);
    rig.harness.finish().await.unwrap();
}
