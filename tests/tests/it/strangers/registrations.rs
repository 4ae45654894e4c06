//! Registrations of apps that nobody uses do not keep out those of others.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use grabd_tests::visitor::{REDIRECT, Visitor, authorization_path, start_app};
use serde_json::{Value, json};

use super::{FORWARDED, TRUSTED};

/// Registers an app from an address. Returns the status and the id.
async fn register_from(app: &TestApp, address: &str) -> Result<(u16, Option<String>)> {
    let metadata =
        json!({ "client_name": "An app", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    let url = format!("{}/v1/oauth/register", app.service.public_url());
    let answer = app.client.post(url).header(FORWARDED, address).json(&metadata).send().await?;
    let (status, body) = (answer.status().as_u16(), answer.json::<Value>().await?);
    Ok((status, body["client_id"].as_str().map(str::to_owned)))
}

#[tokio::test(flavor = "multi_thread")]
async fn oldest_unused_registration_makes_room_for_a_new_one() -> Result<()> {
    let app = start_app(&[("oauth.unused_clients", "3"), TRUSTED]).await?;
    let mut ids = Vec::new();
    for number in 0..8 {
        let (status, id) = register_from(&app, &format!("198.51.{number}.1")).await?;
        assert_eq!(status, 201, "registration {number}");
        ids.push(id.context("an id")?);
    }
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    for (number, id) in ids.iter().enumerate() {
        let page = ada.get(&authorization_path(id, &[])?).await?;
        assert_eq!(page.status == 200, number >= 5, "registration {number}: {}", page.status);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn registrations_are_limited_for_each_site_too() -> Result<()> {
    let app = start_app(&[("oauth.registrations_per_hour", "2"), TRUSTED]).await?;
    for (site, address) in [("a /48", "2001:db8:1:{}::1"), ("a /24", "203.0.113.{}")] {
        let mut admitted = 0;
        for number in 1..60 {
            let (status, _) = register_from(&app, &address.replace("{}", &number.to_string())).await?;
            admitted += usize::from(status == 201);
        }
        assert!((2..20).contains(&admitted), "{site}: {admitted} registrations");
    }
    assert_eq!(register_from(&app, "198.51.100.1").await?.0, 201);
    app.finish().await
}
