//! Other sites cannot send forms for people, put pages into theirs, or have people sent to them.

use anyhow::Result;

use super::visitor::{PASSWORD, Visitor, open_house, register, request_of};

#[tokio::test(flavor = "multi_thread")]
async fn after_signing_in_people_stay_here() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let way = request_of("gcl_x", &[])?;
    for (next, location) in [
        ("", "/grabs"),
        ("/apps?a=b", "/apps?a=b"),
        (&*way, &*way),
        ("https://evil.example", "/grabs"),
        ("//evil.example", "/grabs"),
        ("/\\evil.example", "/grabs"),
        ("/\t/evil.example", "/grabs"),
        ("javascript:alert(1)", "/grabs"),
        ("/apps\r\nSet-Cookie: a=b", "/grabs"),
    ] {
        // Who is signed in goes on at once, and who signs in goes on afterwards.
        let query = reqwest::Url::parse_with_params("http://a.invalid", [("next", next)])?;
        let answer = ada.get(&format!("/sign-in?{}", query.query().unwrap_or_default())).await?;
        assert_eq!((answer.status, answer.location()), (303, location), "{next:?}");
    }
    for (next, location) in [(&*way, &*way), ("https://evil.example", "/grabs"), ("//evil.example", "/grabs")] {
        let answer = Visitor::new(&house).sign_in("ada@example.com", PASSWORD, next).await?;
        assert_eq!((answer.status, answer.location()), (303, location), "{next:?}");
    }
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_accepted_from_our_own_pages_alone() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let mut eve = Visitor::with_account(&house, "eve@example.com").await?;
    let client = register(&house).await?;
    let request = request_of(&client, &[])?;

    // Without a cookie, with somebody else's token, or from another site, nobody signs in.
    let token = Visitor::new(&house).get("/sign-in").await?.hidden("form_token")?;
    let fields = [("email", "ada@example.com"), ("password", PASSWORD), ("form_token", &*token)];
    assert_eq!(Visitor::new(&house).post("/sign-in", &fields).await?.status, 403);
    let mut other = Visitor::new(&house);
    other.get("/sign-in").await?;
    assert_eq!(other.post("/sign-in", &fields).await?.status, 403);
    assert_eq!(other.post("/sign-in", &fields[..2]).await?.status, 403);
    for (header, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
        let mut visitor = Visitor::new(&house);
        visitor.headers.push((header, value.to_owned()));
        assert_eq!(visitor.sign_in("ada@example.com", PASSWORD, "").await?.status, 403, "{header}");
        let form_token = visitor.get("/sign-up").await?.hidden("form_token")?;
        let form = [("form_token", &*form_token), ("email", "new@example.com"), ("password", PASSWORD)];
        assert_eq!(visitor.post("/sign-up", &form).await?.status, 403, "{header}");
    }

    // Nor does anybody allow an app.
    let page = ada.get(&request).await?;
    let foreign = eve.get(&request).await?;
    assert_eq!(ada.decide(&page, "allow", &[("form_token", "")]).await?.status, 403);
    assert_eq!(ada.decide(&page, "allow", &[("form_token", &foreign.hidden("form_token")?)]).await?.status, 403);
    ada.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    assert_eq!(ada.decide(&page, "allow", &[]).await?.status, 403);
    ada.headers.clear();
    // Another person's ticket decides nothing, not even for its owner afterwards to notice.
    assert_eq!(ada.decide(&page, "allow", &[("ticket", &foreign.hidden("ticket")?)]).await?.status, 400);
    assert_eq!(eve.decide(&foreign, "deny", &[]).await?.told("error")?, "access_denied");
    // A ticket decides once, whatever it was.
    assert!(ada.decide(&page, "allow", &[]).await?.told("code")?.starts_with("gac_"));
    for decision in ["allow", "deny"] {
        let again = ada.decide(&page, decision, &[]).await?;
        assert_eq!((again.status, again.location()), (400, ""), "{decision}");
    }
    // Nobody lets an app act for a team that is not theirs.
    let place = foreign.body.split("name=\"place\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let page = ada.get(&request).await?;
    let answer = ada.decide(&page, "allow", &[("place", place.unwrap_or_default())]).await?;
    assert!(!answer.headers.contains_key("location") || answer.told("code").is_err(), "{}", answer.location());

    // Nor does anybody sign out, or disconnect an app.
    ada.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    let form_token = page.hidden("form_token")?;
    assert_eq!(ada.post("/sign-out", &[("form_token", &form_token)]).await?.status, 403);
    ada.headers.clear();
    assert_eq!(ada.post("/sign-out", &[]).await?.status, 403);
    assert!(ada.is_signed_in().await?);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_disconnected_by_its_person_alone() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let mut eve = Visitor::with_account(&house, "eve@example.com").await?;
    let request = request_of(&register(&house).await?, &[])?;
    let page = ada.get(&request).await?;
    let code = ada.decide(&page, "allow", &[]).await?.told("code")?;
    super::requests::exchange(&house, &request, &code).await?;

    let list = ada.get("/apps").await?;
    let path = list.body.split("action=\"/apps/").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let path = format!("/apps/{path}");
    let (hers, ours) = (eve.get("/apps").await?.hidden("form_token")?, list.hidden("form_token")?);
    assert_eq!(eve.post(&path, &[("form_token", &hers)]).await?.status, 404);
    assert_eq!(ada.post(&path, &[("form_token", &hers)]).await?.status, 403);
    assert_eq!(ada.post("/apps/x/disconnect", &[("form_token", &ours)]).await?.status, 404);
    let answer = ada.post(&path, &[("form_token", &ours)]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/apps?disconnected"));
    assert_eq!(ada.post(&path, &[("form_token", &ours)]).await?.status, 404);
    house.finish().await
}
