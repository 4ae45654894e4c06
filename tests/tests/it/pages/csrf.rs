//! Other sites cannot submit forms for people, embed pages, or redirect people to themselves.

use anyhow::Result;

use super::operator::set_operator;
use super::team::team_of;
use super::visitor::{PASSWORD, Visitor, authorization_path, exchange, register, start_app};

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_redirects_only_to_own_pages() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let request = authorization_path("gcl_x", &[])?;
    for (next, location) in [
        ("", "/grabs"),
        ("/apps?a=b", "/apps?a=b"),
        (&*request, &*request),
        ("https://evil.example", "/grabs"),
        ("//evil.example", "/grabs"),
        ("/\\evil.example", "/grabs"),
        ("/\t/evil.example", "/grabs"),
        ("javascript:alert(1)", "/grabs"),
        ("/apps\r\nSet-Cookie: a=b", "/grabs"),
    ] {
        // Signed-in users are redirected at once, others after signing in.
        let query = reqwest::Url::parse_with_params("http://a.invalid", [("next", next)])?;
        let answer = ada.get(&format!("/sign-in?{}", query.query().unwrap_or_default())).await?;
        assert_eq!((answer.status, answer.location()), (303, location), "{next:?}");
    }
    for (next, location) in [(&*request, &*request), ("https://evil.example", "/grabs"), ("//evil.example", "/grabs")] {
        let answer = Visitor::new(&app).sign_in("ada@example.com", PASSWORD, next).await?;
        assert_eq!((answer.status, answer.location()), (303, location), "{next:?}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_accepted_only_from_own_pages() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let client = register(&app).await?;
    let request = authorization_path(&client, &[])?;

    // Signing in fails without a cookie, with another session's token, or from another site.
    let token = Visitor::new(&app).get("/sign-in").await?.hidden_field("form_token")?;
    let fields = [("email", "ada@example.com"), ("password", PASSWORD), ("form_token", &*token)];
    assert_eq!(Visitor::new(&app).post("/sign-in", &fields).await?.status, 403);
    let mut other = Visitor::new(&app);
    other.get("/sign-in").await?;
    assert_eq!(other.post("/sign-in", &fields).await?.status, 403);
    assert_eq!(other.post("/sign-in", &fields[..2]).await?.status, 403);
    for (header, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
        let mut visitor = Visitor::new(&app);
        visitor.headers.push((header, value.to_owned()));
        assert_eq!(visitor.sign_in("ada@example.com", PASSWORD, "").await?.status, 403, "{header}");
        let form_token = visitor.get("/sign-up").await?.hidden_field("form_token")?;
        let form = [("form_token", &*form_token), ("email", "new@example.com"), ("password", PASSWORD)];
        assert_eq!(visitor.post("/sign-up", &form).await?.status, 403, "{header}");
    }

    // Allowing an app fails as well.
    let page = ada.get(&request).await?;
    let foreign = eve.get(&request).await?;
    assert_eq!(ada.decide(&page, "allow", &[("form_token", "")]).await?.status, 403);
    assert_eq!(ada.decide(&page, "allow", &[("form_token", &foreign.hidden_field("form_token")?)]).await?.status, 403);
    ada.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    assert_eq!(ada.decide(&page, "allow", &[]).await?.status, 403);
    ada.headers.clear();
    // A ticket of another user decides nothing and is not used up.
    assert_eq!(ada.decide(&page, "allow", &[("ticket", &foreign.hidden_field("ticket")?)]).await?.status, 400);
    assert_eq!(eve.decide(&foreign, "deny", &[]).await?.redirect_param("error")?, "access_denied");
    // A ticket can be used once.
    assert!(ada.decide(&page, "allow", &[]).await?.redirect_param("code")?.starts_with("gac_"));
    for decision in ["allow", "deny"] {
        let again = ada.decide(&page, decision, &[]).await?;
        assert_eq!((again.status, again.location()), (400, ""), "{decision}");
    }
    // An app cannot be allowed for a foreign team.
    let place = foreign.body.split("name=\"place\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let page = ada.get(&request).await?;
    let answer = ada.decide(&page, "allow", &[("place", place.unwrap_or_default())]).await?;
    assert!(
        !answer.headers.contains_key("location") || answer.redirect_param("code").is_err(),
        "{}",
        answer.location()
    );

    // Signing out and disconnecting an app fail as well.
    ada.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    let form_token = page.hidden_field("form_token")?;
    assert_eq!(ada.post("/sign-out", &[("form_token", &form_token)]).await?.status, 403);
    ada.headers.clear();
    assert_eq!(ada.post("/sign-out", &[]).await?.status, 403);
    assert!(ada.is_signed_in().await?);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn app_can_be_disconnected_only_by_its_user() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let request = authorization_path(&register(&app).await?, &[])?;
    let page = ada.get(&request).await?;
    let code = ada.decide(&page, "allow", &[]).await?.redirect_param("code")?;
    exchange(&app, &request, &code).await?;

    let list = ada.get("/apps").await?;
    let path = list.body.split("action=\"/apps/").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let path = format!("/apps/{path}");
    let (hers, ours) = (eve.get("/apps").await?.hidden_field("form_token")?, list.hidden_field("form_token")?);
    assert_eq!(eve.post(&path, &[("form_token", &hers)]).await?.status, 404);
    assert_eq!(ada.post(&path, &[("form_token", &hers)]).await?.status, 403);
    assert_eq!(ada.post("/apps/x/disconnect", &[("form_token", &ours)]).await?.status, 404);
    let answer = ada.post(&path, &[("form_token", &ours)]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/apps?disconnected"));
    assert_eq!(ada.post(&path, &[("form_token", &ours)]).await?.status, 404);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_without_its_token_is_refused() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 1).await?.to_string();
    let mut olga = Visitor::with_account(&app, "olga@example.com").await?;
    set_operator(&app, "olga@example.com", true).await?;

    let paths = grabd_web::form_paths(app.service.core().clone());
    assert!(paths.len() > 30, "{paths:?}");
    for path in paths {
        let visitor = if path.starts_with("/operator") { &mut olga } else { &mut ada };
        let mut named = path.replace("{team}", &team);
        while let Some((start, rest)) = named.split_once('{') {
            let end = rest.split_once('}').map_or("", |(_, end)| end);
            named = format!("{start}{}{end}", uuid::Uuid::from_u128(0x0199_f3a1_7c52_7d0e_9b7a_3f0c_5c1e_2a44));
        }
        // A request of an app without a ticket is only repeated with GET.
        let ticket = ("ticket", "unknown");
        for fields in [&[ticket][..], &[ticket, ("form_token", "forged")]] {
            let answer = visitor.post(&named, fields).await?;
            // Some of these look for the secret of an e-mailed link first, without which nothing is done either.
            let is_linked = ["/verify-email", "/invitation"].contains(&&*path);
            let is_refused = answer.status == 403 || (is_linked && answer.status == 404);
            assert!(is_refused, "{path}: {} {}", answer.status, answer.body);
        }
    }
    assert!(ada.is_signed_in().await? && olga.is_signed_in().await?);
    app.finish().await
}
