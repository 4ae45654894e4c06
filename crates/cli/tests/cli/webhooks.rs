//! Webhooks from the shell.

use grabd_tests::harness::ALLOWED;

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_made_changed_tried_and_removed() {
    let rig = Rig::start(1, &[("webhooks.allow_http", "true")]).await;
    let url = format!("http://{ALLOWED}/hook");
    let made = rig.live(&["webhooks", "create", &url, "--event", "grab.done", "--json"]).await.ends(0).json().remove(0);
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"));
    let id = made["id"].as_str().unwrap();
    let listed = rig.live(&["webhooks", "list"]).await.ends(0).text();
    assert!(listed.contains(id) && listed.contains("grab.done") && !listed.contains("whsec_"), "{listed}");
    rig.live(&["webhooks", "update", id]).await.ends(2);
    let changed = rig.live(&["webhooks", "update", id, "--description", "prod", "--disable", "--json"]).await.ends(0);
    assert_eq!(changed.json()[0]["status"], "disabled");
    rig.live(&["webhooks", "update", id, "--enable"]).await.ends(0);
    let rotated = rig.live(&["webhooks", "rotate-secret", id, "--json"]).await.ends(0).json().remove(0);
    assert_ne!(rotated["secret"], made["secret"]);
    let due = rig.live(&["webhooks", "test", id, "--json"]).await.ends(0).json().remove(0);
    let deliveries = rig.live(&["webhooks", "deliveries", id]).await.ends(0).text();
    assert!(deliveries.contains(due["id"].as_str().unwrap()) && deliveries.contains("webhook.test"), "{deliveries}");
    rig.live(&["webhooks", "redeliver", id, due["id"].as_str().unwrap()]).await.ends(0);
    rig.live(&["webhooks", "delete", id]).await.ends(0);
    rig.live(&["webhooks", "show", id]).await.ends(1);
    rig.harness.finish().await.unwrap();
}
