//! `grab verify` with evidence of a real service.

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn evidence_is_saved_beside_the_image_and_verified_offline() {
    let rig = Rig::start(1, &[]).await;
    let url = rig.harness.site.url("/tiny");
    rig.live(&[&url, "--evidence", "-o", "page.png"]).await.expect_exit(0);
    assert!(rig.file("page.png").exists() && !rig.file("page.mhtml").exists());
    let service = rig.harness.service.public_url().to_owned();
    let verified = rig.run(None, &["verify", "page.evidence.zip", "--from", &service]).await.expect_exit(0).text();
    assert!(verified.contains("a key that you trust") && verified.contains(&url), "{verified}");

    let keys = format!("{service}/.well-known/grabd-evidence-keys");
    let keys = rig.harness.client.get(keys).send().await.unwrap().text().await.unwrap();
    std::fs::write(rig.file("keys.json"), keys).unwrap();
    let args = ["verify", "page.evidence.zip", "--key", "keys.json", "--json"];
    let json = rig.run(None, &args).await.expect_exit(0).json().remove(0);
    assert_eq!((&json["valid"], &json["key_trusted"]), (&true.into(), &true.into()));
    let unchecked = rig.run(None, &["verify", "page.evidence.zip"]).await.expect_exit(9).text();
    assert!(unchecked.contains("NOT checked"), "{unchecked}");

    let mut package = std::fs::read(rig.file("page.evidence.zip")).unwrap();
    let last = package.len() - 1;
    package[last] ^= 1;
    std::fs::write(rig.file("page.evidence.zip"), package).unwrap();
    let refused = rig.run(None, &args).await.expect_exit(1).json().remove(0);
    assert_eq!(refused["valid"], false, "{refused}");
    rig.run(None, &["verify", "missing.zip"]).await.expect_exit(7);
    rig.harness.finish().await.unwrap();
}
