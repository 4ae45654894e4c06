//! Rate limits per address, and the responses when they are exceeded.

use anyhow::Result;
use grabd_tests::harness::TestApp;

use super::users::first_team;
use super::visitor::{PageResponse, Visitor, start_app};

/// Sends requests from this address until one is refused. Returns the number of admitted requests and the refusal.
async fn exhaust(app: &TestApp, address: &str, path: &str, is_form: bool) -> Result<(u32, PageResponse)> {
    let mut visitor = Visitor::new(app);
    visitor.headers.push(("x-forwarded-for", address.to_owned()));
    for admitted in 0..40 {
        let answer = if is_form { visitor.post(path, &[]).await? } else { visitor.get(path).await? };
        if answer.status == 429 {
            return Ok((admitted, answer));
        }
    }
    anyhow::bail!("{path} has no limit")
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_rate_limited_per_network() -> Result<()> {
    let settings = [("limits.requests_per_minute", "7"), ("http.trusted_proxies", "127.0.0.1/32")];
    let app = start_app(&settings).await?;
    let before = std::time::Instant::now();
    let rows = [
        ("/oauth/authorize", false, 7, 9, true),
        ("/oauth/authorize", true, 7, 9, true),
        ("/sign-in", false, 7, 9, true),
        ("/sign-up", false, 7, 9, true),
        ("/sign-in", true, 20, 3, true),
        ("/sign-in/code", false, 7, 9, true),
        ("/sign-in/code", true, 7, 9, true),
        ("/sign-in/passkey", true, 7, 9, true),
        ("/sign-in/passkey/challenge", false, 7, 9, true),
        ("/sign-up", true, 10, 360, true),
        ("/sign-out", true, 7, 9, true),
        ("/apps", false, 7, 9, true),
        ("/apps/0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44/disconnect", true, 7, 9, true),
        ("/", false, 7, 9, true),
        ("/", true, 10, 6, true),
        ("/grabs", false, 7, 9, true),
        ("/teams/0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44/capture", true, 7, 9, true),
        ("/keys", false, 7, 9, true),
        ("/teams", false, 7, 9, true),
        ("/teams/x/members/y/remove", true, 7, 9, true),
        ("/account", false, 7, 9, true),
        ("/account/password", true, 20, 3, true),
        ("/account/second-factor", false, 7, 9, true),
        ("/account/second-factor", true, 20, 3, true),
        ("/account/second-factor/recovery-codes", true, 20, 3, true),
        ("/account/second-factor/off", true, 20, 3, true),
        ("/account/passkeys", false, 7, 9, true),
        ("/account/passkeys/new", true, 20, 3, true),
        ("/account/passkeys/add", true, 7, 9, true),
        ("/account/passkeys/x/remove", true, 20, 3, true),
        ("/forgotten-password", true, 10, 360, true),
        ("/new-password", true, 20, 3, true),
        ("/verify-email", false, 7, 9, true),
        ("/verify-email", true, 20, 3, true),
        ("/verify-email/send", true, 10, 360, true),
        ("/invitation", true, 10, 360, true),
        ("/teams/0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44/billing", false, 7, 9, true),
        ("/teams/0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44/billing/ledger.csv", false, 7, 9, true),
        ("/teams/0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44/billing/checkout", true, 7, 9, true),
        ("/teams/0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44/webhooks", false, 7, 9, true),
        ("/teams/0199f3a1-7c52-7d0e-9b7a-3f0c5c1e2a44/webhooks/new", true, 7, 9, true),
        ("/v1/oauth/token", true, 7, 9, false),
        ("/v1/oauth/revoke", true, 7, 9, false),
        ("/v1/oauth/register", true, 20, 180, false),
    ];
    // Each row uses a network of its own, whose addresses count as one.
    for (number, (path, is_form, share, longest, is_page)) in rows.into_iter().enumerate() {
        let (admitted, refusal) = exhaust(&app, &format!("2001:db8:{number}:1::1"), path, is_form).await?;
        let slack = before.elapsed().as_secs() as u32 / 3 + 1;
        assert!((share..=share + slack).contains(&admitted), "{path}: {admitted}");
        let wait: u64 = refusal.header("retry-after").parse()?;
        assert!((1..=longest).contains(&wait), "{path}: {wait}");
        match is_page {
            true => assert!(refusal.body.contains("<h1>Too many requests</h1>"), "{path}: {}", refusal.body),
            false => assert_eq!(refusal.json()?["error"], "temporarily_unavailable", "{path}"),
        }
        assert_eq!(refusal.header("cache-control"), "no-store");
        let neighbour = exhaust(&app, &format!("2001:db8:{number}:1:ffff::1"), path, is_form).await?.0;
        assert!(neighbour <= slack, "{path}: the network's other addresses had {neighbour}");
        // The /48 has more than twice as many.
        let other_network = exhaust(&app, &format!("2001:db8:{number}:2::1"), path, is_form).await?.0;
        assert!(other_network >= share, "{path}: another network had {other_network}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_accounts_and_teams_are_limited_per_user_and_day() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let team = first_team(&mut eve).await?;
    let form_token = eve.get(&format!("{team}/people")).await?.hidden_field("form_token")?;
    let form = [("form_token", &*form_token), ("name", "Eve's team")];
    let rename = format!("{team}/name");
    let mut admitted = 0;
    let refusal = loop {
        let answer = eve.post(&rename, &form).await?;
        if answer.status == 429 {
            break answer;
        }
        assert_eq!(answer.status, 303, "{}", answer.body);
        admitted += 1;
    };
    // One more is admitted every three minutes.
    assert!((500..=502).contains(&admitted), "{admitted}");
    assert!(refusal.body.contains("<h1>Too many changes</h1>"), "{}", refusal.body);
    assert!(refusal.header("retry-after").parse::<u64>()? <= 173, "{}", refusal.header("retry-after"));
    // Another form counts too, and nothing else does.
    let answer = eve.post("/account/sessions/end", &[("form_token", &form_token)]).await?;
    assert_eq!(answer.status, 429, "{}", answer.body);
    assert_eq!(eve.get(&format!("{team}/people")).await?.status, 200);
    // It is a limit of the user, and not of the network.
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    let form_token = ada.get(&format!("{team}/people")).await?.hidden_field("form_token")?;
    let form = [("form_token", &*form_token), ("name", "Ada's team")];
    assert_eq!(ada.post(&format!("{team}/name"), &form).await?.status, 303);
    app.finish().await
}
