//! One service for each database.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use serde_json::json;

use crate::billing::cluster::PrivateDatabase;

#[tokio::test(flavor = "multi_thread")]
async fn second_service_on_a_postgres_database_is_refused_with_what_to_do() -> Result<()> {
    let database = PrivateDatabase::create_migrated().await;
    let url = database.url();
    let first = TestApp::start(2, &[("database.url", &url)]).await?;
    let refused = TestApp::start(0, &[("database.url", &url)]).await.err().context("the second one started")?;
    let message = format!("{refused:#}");
    assert!(message.contains("another grabd serves") && message.contains("GRABD_DATABASE__URL"), "{message}");
    assert!(message.contains("GRABD_CLUSTER__ENABLED=true") && message.contains("docs/FLEET.md"), "{message}");
    // The first one is not affected: it still has its leases.
    first.capture("/tiny", json!({})).await?;
    // The lock ends with the service.
    let first = first.restart().await?;
    first.capture("/tiny", json!({})).await?;
    first.finish().await?;
    database.drop_database().await;
    Ok(())
}
