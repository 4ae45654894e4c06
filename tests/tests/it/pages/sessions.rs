//! Sessions begin with signing in, never before, and end at once.

use anyhow::Result;

use super::visitor::{PASSWORD, Visitor, open_house};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_signs_in_to_a_session_that_was_there_before() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let first = ada.session()?;
    assert!(first.starts_with("gss_") && first.len() == 47, "{}", first.len());
    assert!(!ada.cookies.contains_key("grabd_visit"), "the visit is over");

    // A session that somebody planted stays nobody's, and one that was open ends.
    let planted = format!("gss_{}", "a".repeat(43));
    let mut victim = Visitor::new(&house);
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
    let mut again = Visitor::new(&house);
    let token = again.get("/sign-in").await?.hidden("form_token")?;
    again.cookies.insert("grabd_session".to_owned(), former.clone());
    let form = [("form_token", &*token), ("email", "ada@example.com"), ("password", PASSWORD)];
    assert_eq!(again.post("/sign-in", &form).await?.status, 303);
    assert_ne!(again.session()?, former);
    assert!(!victim.is_signed_in().await?, "the former session of that browser has ended");

    // Signing out ends it for whoever else has its token, and no other.
    let mut thief = Visitor::new(&house);
    thief.cookies.clone_from(&again.cookies);
    assert!(thief.is_signed_in().await?);
    let form_token = again.get("/apps").await?.hidden("form_token")?;
    let answer = again.post("/sign-out", &[("form_token", &form_token)]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/sign-in?signed_out"));
    assert!(!again.cookies.contains_key("grabd_session"));
    assert!(!thief.is_signed_in().await?);
    assert!(ada.is_signed_in().await?);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_learns_who_has_an_account() -> Result<()> {
    let house = open_house(&[]).await?;
    Visitor::with_account(&house, "ada@example.com").await?;
    let mut bodies = Vec::new();
    for email in ["ada@example.com", "nobody@example.com"] {
        let mut visitor = Visitor::new(&house);
        let answer = visitor.sign_in(email, "not the password at all", "").await?;
        assert_eq!(answer.status, 422);
        assert!(!visitor.cookies.contains_key("grabd_session"));
        bodies.push(answer.body.replace(email, "").replace(&answer.hidden("form_token")?, ""));
    }
    assert_eq!(bodies[0], bodies[1]);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn under_https_cookies_belong_to_one_host_and_never_travel_in_the_clear() -> Result<()> {
    let house = open_house(&[("http.public_url", "https://grabd.example")]).await?;
    let url = format!("http://{}/sign-in", house.service.http());
    let answer = house.client.get(url).send().await?;
    let line = answer.headers()["set-cookie"].to_str()?;
    assert!(line.starts_with("__Host-grabd_visit=") && line.ends_with("; HttpOnly; SameSite=Lax; Secure"), "{line}");
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_leave_people_the_way_to_their_other_pages() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let mut nobody = Visitor::new(&house);
    let (hers, nobodys) = (ada.get("/sign-out").await?, nobody.get("/sign-out").await?);
    assert_eq!((hers.status, nobodys.status), (405, 405));
    let navigation = ["<nav aria-label=\"Main\">", "ada@example.com", "action=\"/sign-out\""];
    for part in navigation {
        assert!(hers.body.contains(part), "{part}: {}", hers.body);
        assert!(!nobodys.body.contains(part), "{part}: {}", nobodys.body);
    }
    // It does what it does elsewhere.
    let answer = ada.post("/sign-out", &[("form_token", &hers.hidden("form_token")?)]).await?;
    assert_eq!(answer.status, 303);
    assert_eq!(ada.get("/sign-out").await?.body, nobodys.body);
    house.finish().await
}
