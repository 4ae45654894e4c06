//! Sessions start with signing in and end at once.

use anyhow::Result;

use super::visitor::{PASSWORD, Visitor, start_app};

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_creates_a_new_session() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let first = ada.session()?;
    assert!(first.starts_with("gss_") && first.len() == 47, "{}", first.len());
    assert!(!ada.cookies.contains_key("grabd_visit"), "the visit cookie is removed");

    // A planted session token is not adopted, and an earlier session ends.
    let planted = format!("gss_{}", "a".repeat(43));
    let mut victim = Visitor::new(&app);
    victim.cookies.insert("grabd_session".to_owned(), planted.clone());
    assert!(!victim.is_signed_in().await?);
    let answer = victim.sign_in("ada@example.com", PASSWORD, "").await?;
    assert_eq!(answer.status, 303);
    let lines: Vec<&str> = answer.headers.get_all("set-cookie").iter().filter_map(|line| line.to_str().ok()).collect();
    let is_session = |line: &&&str| line.starts_with("grabd_session=");
    let session = lines.iter().find(is_session).unwrap_or(&"");
    assert!(session.ends_with("; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax"), "{session}");
    assert_ne!(victim.session()?, planted);
    assert_ne!(victim.session()?, first);
    assert!(victim.is_signed_in().await? && ada.is_signed_in().await?);

    let former = victim.session()?;
    let mut again = Visitor::new(&app);
    let token = again.get("/sign-in").await?.hidden_field("form_token")?;
    again.cookies.insert("grabd_session".to_owned(), former.clone());
    let form = [("form_token", &*token), ("email", "ada@example.com"), ("password", PASSWORD)];
    assert_eq!(again.post("/sign-in", &form).await?.status, 303);
    assert_ne!(again.session()?, former);
    assert!(!victim.is_signed_in().await?, "the former session of that browser must have ended");

    // Signing out ends the session for every holder of its token, and no other session.
    let mut thief = Visitor::new(&app);
    thief.cookies.clone_from(&again.cookies);
    assert!(thief.is_signed_in().await?);
    let form_token = again.get("/apps").await?.hidden_field("form_token")?;
    let answer = again.post("/sign-out", &[("form_token", &form_token)]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/sign-in?signed_out"));
    assert!(!again.cookies.contains_key("grabd_session"));
    assert!(!thief.is_signed_in().await?);
    assert!(ada.is_signed_in().await?);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_does_not_reveal_accounts() -> Result<()> {
    let app = start_app(&[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    let mut bodies = Vec::new();
    for email in ["ada@example.com", "nobody@example.com"] {
        let mut visitor = Visitor::new(&app);
        let answer = visitor.sign_in(email, "not the password at all", "").await?;
        assert_eq!(answer.status, 422);
        assert!(!visitor.cookies.contains_key("grabd_session"));
        bodies.push(answer.body.replace(email, "").replace(&answer.hidden_field("form_token")?, ""));
    }
    assert_eq!(bodies[0], bodies[1]);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_are_host_only_and_secure_under_https() -> Result<()> {
    let app = start_app(&[("http.public_url", "https://grabd.example")]).await?;
    let url = format!("http://{}/sign-in", app.service.http());
    let answer = app.client.get(url).send().await?;
    let line = answer.headers()["set-cookie"].to_str()?;
    assert!(line.starts_with("__Host-grabd_visit=") && line.ends_with("; HttpOnly; SameSite=Lax; Secure"), "{line}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn error_pages_keep_the_navigation() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut signed_out = Visitor::new(&app);
    let (hers, signed_out_page) = (ada.get("/sign-out").await?, signed_out.get("/sign-out").await?);
    assert_eq!((hers.status, signed_out_page.status), (405, 405));
    let navigation = ["<nav aria-label=\"Main\">", "ada@example.com", "action=\"/sign-out\""];
    for part in navigation {
        assert!(hers.body.contains(part), "{part}: {}", hers.body);
        assert!(!signed_out_page.body.contains(part), "{part}: {}", signed_out_page.body);
    }
    // The sign-out form works there as well.
    let answer = ada.post("/sign-out", &[("form_token", &hers.hidden_field("form_token")?)]).await?;
    assert_eq!(answer.status, 303);
    assert_eq!(ada.get("/sign-out").await?.body, signed_out_page.body);
    app.finish().await
}
