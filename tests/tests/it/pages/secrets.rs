//! The secrets that stay in use when a member leaves: they are named, and can be replaced.

use anyhow::{Context, Result};
use grabd_domain::ids::TeamId;
use grabd_tests::visitor::{PageResponse, Visitor, start_app};

use super::team::team_of;
use super::users::{create_key, first_team, ids, join, send, users};
use super::webhooks::create_webhook;

/// Three secrets that a member has seen, and one webhook that somebody else made.
struct Secrets {
    key: String,
    webhook: String,
}

/// Has Bob create a key, look at its link secret, and register a webhook.
async fn bob_sees_secrets(ada: &mut Visitor<'_>, bob: &mut Visitor<'_>, team: &str, id: TeamId) -> Result<Secrets> {
    create_key(bob, team, "Bob’s key", "test").await?;
    let key = ids(&bob.get(&format!("{team}/keys")).await?, "id=\"revoke-").pop().context("a key")?;
    let link = format!("{team}/keys/{key}/link");
    assert_eq!(send(bob, &link, &link, &[]).await?.status, 200);
    let fields = |url: &'static str| [("url", url), ("events", "*"), ("environment", "test")];
    let (webhook, _) = create_webhook(bob, id, &fields("https://bob.example/hook")).await?;
    create_webhook(ada, id, &fields("https://ada.example/hook")).await?;
    let webhook = webhook.rsplit('/').next().context("an id")?.to_owned();
    Ok(Secrets { key, webhook })
}

/// The paths that replace the secrets of a page.
fn replacements(page: &PageResponse) -> Vec<String> {
    let links = page.body.split("id=\"replace-").skip(1);
    links.filter_map(|rest| Some(rest.split("href=\"").nth(1)?.split('"').next()?.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_a_member_names_the_secrets_they_know_and_offers_to_replace_them() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&app, "bob@example.com").await?;
    let (team, id) = (first_team(&mut ada).await?, team_of(&app, "ada@example.com", 0).await?);
    join(&app, &mut ada, &team, &mut bob, "bob@example.com").await?;
    let Secrets { key, webhook } = bob_sees_secrets(&mut ada, &mut bob, &team, id).await?;
    let expected = [
        format!("{team}/keys/{key}/revoke"),
        format!("{team}/keys/{key}/link/replace"),
        format!("{team}/webhooks/{webhook}/secret"),
    ];
    let (page, secrets) = (users(&team), format!("{team}/secrets"));
    assert_eq!(replacements(&ada.get(&secrets).await?), [""; 0], "Bob is a member");

    let member = ids(&ada.get(&page).await?, "id=\"remove-").pop().context("a member")?;
    let remove = format!("{team}/members/{member}/remove");
    let asked = ada.get(&remove).await?;
    assert_eq!(replacements(&asked), expected, "{}", asked.body);
    for words in ["Secrets that stay in use", "Bob’s key", "https://bob.example/hook", "bob@example.com"] {
        assert!(asked.body.contains(words), "{words}: {}", asked.body);
    }
    assert!(!asked.body.contains("ada.example"), "{}", asked.body);
    let removed = send(&mut ada, &remove, &remove, &[]).await?;
    assert_eq!((removed.status, removed.location()), (303, &*format!("{secrets}?removed")));
    let listed = ada.get(removed.location()).await?;
    assert_eq!(replacements(&listed), expected, "{}", listed.body);
    assert!(listed.body.contains("Member removed."), "{}", listed.body);
    assert!(ada.get(&page).await?.body.contains("People without access know 3 secrets"));

    // Each is replaced from there, and the list gets shorter.
    let link = format!("{team}/keys/{key}/link");
    let secret = |page: &PageResponse| page.body.split("gls_").nth(1).map(|rest| rest[..43].to_owned());
    let former = secret(&send(&mut ada, &link, &link, &[]).await?).context("a secret")?;
    let replaced = send(&mut ada, &expected[1], &expected[1], &[]).await?;
    let current = secret(&replaced).context("a secret")?;
    assert_ne!(former, current);
    assert_eq!(secret(&send(&mut ada, &link, &link, &[]).await?), Some(current));
    for (path, left) in [(&expected[2], 1), (&expected[0], 0)] {
        assert!([200, 303].contains(&send(&mut ada, path, path, &[]).await?.status), "{path}");
        assert_eq!(replacements(&ada.get(&secrets).await?).len(), left, "{path}");
    }
    assert!(!ada.get(&page).await?.body.contains("People without access know"));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_a_team_names_the_secrets_and_tells_its_owners() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&app, "bob@example.com").await?;
    let (team, id) = (first_team(&mut ada).await?, team_of(&app, "ada@example.com", 0).await?);
    join(&app, &mut ada, &team, &mut bob, "bob@example.com").await?;
    bob_sees_secrets(&mut ada, &mut bob, &team, id).await?;
    let leave = format!("{team}/leave");
    let asked = bob.get(&leave).await?;
    assert_eq!(replacements(&asked).len(), 3, "{}", asked.body);
    assert_eq!(send(&mut bob, &leave, &leave, &[]).await?.location(), "/teams?left");
    assert!(ada.get(&users(&team)).await?.body.contains("People without access know 3 secrets"));
    assert_eq!(replacements(&ada.get(&format!("{team}/secrets")).await?).len(), 3);
    assert_eq!(bob.get(&format!("{team}/secrets")).await?.status, 404);
    app.finish().await
}
