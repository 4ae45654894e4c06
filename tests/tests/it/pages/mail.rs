//! Letters: whom they reach, what their links open, and what becomes of them when the mail server is in no mood.

use std::time::Instant;

use anyhow::{Context, Result};
use grabd_tests::harness::Harness;
use grabd_tests::mail_server::{MailServer, Secrecy};

use super::log::Log;
use super::visitor::{Answer, PASSWORD, Visitor, open_house, register, request_of};

const NEW: &str = "quite another password";

/// A service that lets everybody sign up, and whose letters go to this server.
pub(super) async fn house_with(server: &MailServer, user: &str, more: &[(&'static str, &str)]) -> Result<Harness> {
    let url = server.url(user);
    let settings = [("mail.smtp_url", &*url), ("mail.from", "grabd <grabd@example.com>")];
    open_house(&[&settings, more].concat()).await
}

pub(super) async fn forget(house: &Harness, email: &str) -> Result<Answer> {
    let mut visitor = Visitor::new(house);
    let form_token = visitor.get("/forgotten-password").await?.hidden("form_token")?;
    visitor.post("/forgotten-password", &[("form_token", &*form_token), ("email", email)]).await
}

/// What follows the origin in a link.
fn path<'a>(house: &Harness, link: &'a str) -> Result<&'a str> {
    link.strip_prefix(house.service.public_url()).with_context(|| link.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_password_is_chosen_anew_with_the_mail_of_its_owner() -> Result<()> {
    let server = MailServer::start(Secrecy::None).await?;
    let house = house_with(&server, "", &[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let request = request_of(&register(&house).await?, &[])?;
    let page = ada.get(&request).await?;
    let code = ada.decide(&page, "allow", &[]).await?.told("code")?;
    let tokens = super::requests::exchange(&house, &request, &code).await?;

    assert_eq!(forget(&house, " Ada@Example.com ").await?.status, 200);
    let letter = server.wait_for(0).await?;
    assert_eq!(letter.envelope, ("<grabd@example.com>".to_owned(), "<ada@example.com>".to_owned()));
    assert_eq!((letter.in_tls, &*letter.hello), (false, "127.0.0.1"));
    assert_eq!(letter.header("From"), Some("grabd <grabd@example.com>"));
    assert_eq!(letter.header("Auto-Submitted"), Some("auto-generated"));
    assert!(
        letter.header("Subject").is_some_and(|subject| subject.starts_with("A new password for grabd at 127.0.0.1"))
    );
    assert!(letter.header("Message-ID").is_some() && letter.header("Date").is_some(), "{}", letter.data);
    let link = letter.link()?;
    let link = path(&house, &link)?;

    // Looking, as a program does that looks at mails, uses nothing up.
    let mut anywhere = Visitor::new(&house);
    for _ in 0..2 {
        assert_eq!(anywhere.get(link).await?.status, 200);
    }
    let page = anywhere.get(link).await?;
    let (form_token, token) = (page.hidden("form_token")?, page.hidden("token")?);
    let form = |password| [("form_token", &*form_token), ("token", &*token), ("password", password)];
    assert_eq!(anywhere.post("/new-password", &form("short")).await?.status, 422);
    assert!(ada.is_signed_in().await?);
    let answer = anywhere.post("/new-password", &form(NEW)).await?;
    assert_eq!((answer.status, answer.location()), (303, "/sign-in?password_set"));
    assert_eq!(anywhere.post("/new-password", &form(PASSWORD)).await?.status, 404);
    assert_eq!(anywhere.get(link).await?.status, 404);

    // All sessions are over, the former password opens nothing, and what was connected goes on.
    assert!(!ada.is_signed_in().await? && !anywhere.is_signed_in().await?);
    assert_eq!(Visitor::new(&house).sign_in("ada@example.com", PASSWORD, "").await?.status, 422);
    assert_eq!(ada.sign_in("ada@example.com", NEW, "").await?.status, 303);
    let access = tokens["access_token"].as_str().context("a token")?;
    assert_eq!(house.get("/usage", access).await?.0, 200);
    let letter = server.wait_for(1).await?;
    assert!(letter.text().contains("was changed a moment ago"), "{}", letter.data);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_learns_from_a_forgotten_password_who_has_an_account() -> Result<()> {
    let server = MailServer::start(Secrecy::None).await?;
    let house = house_with(&server, "", &[("http.trusted_proxies", "127.0.0.1/32")]).await?;
    for number in 0..8 {
        Visitor::with_account(&house, &format!("known{number}@example.com")).await?;
    }
    let mut seen = Vec::new();
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..8 {
        for (which, name) in ["known", "nobody"].into_iter().enumerate() {
            let email = format!("{name}{number}@example.com");
            let mut visitor = Visitor::new(&house);
            visitor.headers.push(("x-forwarded-for", format!("2001:db8:{number}:{which}::1")));
            let form_token = visitor.get("/forgotten-password").await?.hidden("form_token")?;
            let before = Instant::now();
            let answer =
                visitor.post("/forgotten-password", &[("form_token", &*form_token), ("email", &*email)]).await?;
            times[which].push(before.elapsed());
            assert_eq!(answer.status, 200);
            seen.push(answer.body.replace(&email, ""));
        }
    }
    assert!(seen.iter().all(|body| *body == seen[0]), "the answers differ");
    let [known, nobody] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    eprintln!("the median answer took {known:?} for those who are known, and {nobody:?} for nobody");
    server.wait_for(7).await?;
    assert_eq!(server.letters().len(), 8, "nobody is written to who has no account");
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_pestered_with_letters_they_did_not_ask_for() -> Result<()> {
    let server = MailServer::start(Secrecy::None).await?;
    let house = house_with(&server, "", &[]).await?;
    Visitor::with_account(&house, "ada@example.com").await?;
    Visitor::with_account(&house, "eve@example.com").await?;
    for _ in 0..8 {
        assert_eq!(forget(&house, "ada@example.com").await?.status, 200);
    }
    // Hers comes after all that went to the other.
    assert_eq!(forget(&house, "eve@example.com").await?.status, 200);
    server.wait_for(5).await?;
    house.finish().await?;
    let to_ada = server.letters().iter().filter(|letter| letter.envelope.1 == "<ada@example.com>").count();
    assert_eq!((to_ada, server.letters().len()), (5, 6));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_travel_in_tls_with_the_operators_password() -> Result<()> {
    let dir = tempfile::tempdir()?;
    for secrecy in [Secrecy::StartTls, Secrecy::Tls] {
        let server = MailServer::start(secrecy).await?;
        let ca_file = dir.path().join("ca.pem");
        std::fs::write(&ca_file, server.certificate())?;
        let ca_file = ca_file.display().to_string();
        let house = house_with(&server, "user%40example.com:s%3Aecret@", &[("mail.ca_file", &*ca_file)]).await?;
        Visitor::with_account(&house, "ada@example.com").await?;
        forget(&house, "ada@example.com").await?;
        let letter = server.wait_for(0).await?;
        assert!(letter.in_tls, "{secrecy:?}");
        // RFC 4616: nothing, the user, the password, with zeros between.
        use base64::Engine as _;
        let expected = base64::prelude::BASE64_STANDARD.encode("\0user@example.com\0s:ecret");
        assert_eq!(letter.auth, Some(format!("PLAIN {expected}")), "{secrecy:?}");
        house.finish().await?;

        // A server that nobody vouches for gets nothing.
        let stranger = MailServer::start(secrecy).await?;
        let house = house_with(&stranger, "user:secret@", &[]).await?;
        Visitor::with_account(&house, "ada@example.com").await?;
        forget(&house, "ada@example.com").await?;
        house.finish().await?;
        assert_eq!(stranger.letters().len(), 0, "{secrecy:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_in_no_mood_is_asked_again_and_one_that_refuses_is_not() -> Result<()> {
    let server = MailServer::start(Secrecy::None).await?;
    let house = house_with(&server, "", &[]).await?;
    Visitor::with_account(&house, "ada@example.com").await?;
    server.answers(&["451 come back later", "250 taken", "550 no such person"]);
    forget(&house, "ada@example.com").await?;
    let (first, second) = (server.wait_for(0).await?, server.wait_for(1).await?);
    assert_eq!(first.link()?, second.link()?);
    forget(&house, "ada@example.com").await?;
    server.wait_for(2).await?;
    // At the end, whatever would still be tried is tried.
    house.finish().await?;
    assert_eq!(server.letters().len(), 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_in_the_log_only_where_no_letters_are_sent() -> Result<()> {
    let log = Log::capture();
    let silent = open_house(&[]).await?;
    Visitor::with_account(&silent, "ada@example.com").await?;
    let page = forget(&silent, "ada@example.com").await?;
    assert!(page.body.contains("Ask whoever runs this grabd"), "{}", page.body);
    let public_url = silent.service.public_url().to_owned();
    // Ended first: what was to be written is written then.
    silent.finish().await?;
    let link = log.text()?.split("link=").nth(1).and_then(|rest| rest.split_whitespace().next().map(str::to_owned));
    let link = link.context("no link for the operator")?;
    let link = link.trim_matches('"').to_owned();
    assert!(link.starts_with(&format!("{public_url}/new-password?token=gpr_")), "{link}");

    let server = MailServer::start(Secrecy::None).await?;
    let house = house_with(&server, "", &[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    forget(&house, "ada@example.com").await?;
    let reset = server.wait_for(0).await?.link()?;
    let mut anywhere = Visitor::new(&house);
    let page = anywhere.get(path(&house, &reset)?).await?;
    let (form_token, token) = (page.hidden("form_token")?, page.hidden("token")?);
    let team = super::people::first_team(&mut ada).await?;
    super::people::invite(&mut ada, &team, "bob@example.com", "member").await?;
    let invitation = server.wait_for(1).await?.link()?;
    assert_eq!(Visitor::new(&house).get(path(&house, &invitation)?).await?.status, 200);
    let form = [("form_token", &*form_token), ("token", &*token), ("password", NEW)];
    assert_eq!(anywhere.post("/new-password", &form).await?.status, 303);
    house.finish().await?;
    let text = log.text()?;
    assert!(text.lines().count() > 20, "the log is not captured:\n{text}");
    for secret in [token, NEW.to_owned(), invitation.split_once("token=").context("a token")?.1.to_owned()] {
        let line = text.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "a secret is in the log");
    }
    Ok(())
}
