//! Emails: recipients, links, and retries when the mail server refuses them.

use std::time::Instant;

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use grabd_tests::mail_server::{MailServer, TlsMode};

use super::log::Log;
use super::visitor::{PASSWORD, PageResponse, Visitor, authorization_path, exchange, register, start_app};

const NEW: &str = "quite another password";

/// Starts a service with open sign-up that sends mail to this server.
pub(super) async fn start_app_with_mail(
    server: &MailServer,
    user: &str,
    more: &[(&'static str, &str)],
) -> Result<TestApp> {
    let url = server.url(user);
    let settings = [("mail.smtp_url", &*url), ("mail.from", "grabd <grabd@example.com>")];
    start_app(&[&settings, more].concat()).await
}

pub(super) async fn request_password_reset(app: &TestApp, email: &str) -> Result<PageResponse> {
    let mut visitor = Visitor::new(app);
    let form_token = visitor.get("/forgotten-password").await?.hidden_field("form_token")?;
    visitor.post("/forgotten-password", &[("form_token", &*form_token), ("email", email)]).await
}

/// The path of a link, without the origin.
fn path<'a>(app: &TestApp, link: &'a str) -> Result<&'a str> {
    link.strip_prefix(app.service.public_url()).with_context(|| link.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn password_reset_works_with_the_emailed_link() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let request = authorization_path(&register(&app).await?, &[])?;
    let page = ada.get(&request).await?;
    let code = ada.decide(&page, "allow", &[]).await?.redirect_param("code")?;
    let tokens = exchange(&app, &request, &code).await?;

    assert_eq!(request_password_reset(&app, " Ada@Example.com ").await?.status, 200);
    let email = server.wait_for(0).await?;
    assert_eq!(email.envelope, ("<grabd@example.com>".to_owned(), "<ada@example.com>".to_owned()));
    assert_eq!((email.in_tls, &*email.hello), (false, "127.0.0.1"));
    assert_eq!(email.header("From"), Some("grabd <grabd@example.com>"));
    assert_eq!(email.header("Auto-Submitted"), Some("auto-generated"));
    assert!(
        email
            .header("Subject")
            .is_some_and(|subject| subject.starts_with("Reset your password for grabd at 127.0.0.1"))
    );
    let domain = email.header("From").and_then(|from| Some(from.split_once('@')?.1.trim_end_matches('>').to_owned()));
    let id = email.header("Message-ID").map(|id| id.trim_end_matches('>').to_owned());
    assert!(id.zip(domain).is_some_and(|(id, domain)| id.ends_with(&format!("@{domain}"))), "{}", email.data);
    assert!(email.header("Date").is_some(), "{}", email.data);
    let link = email.link()?;
    let link = path(&app, &link)?;

    // Opening the link, as mail scanners do, does not use it up.
    let mut visitor = Visitor::new(&app);
    for _ in 0..2 {
        assert_eq!(visitor.get(link).await?.status, 200);
    }
    let page = visitor.get(link).await?;
    let (form_token, token) = (page.hidden_field("form_token")?, page.hidden_field("token")?);
    let form = |password| [("form_token", &*form_token), ("token", &*token), ("password", password)];
    assert_eq!(visitor.post("/new-password", &form("short")).await?.status, 422);
    assert!(ada.is_signed_in().await?);
    let answer = visitor.post("/new-password", &form(NEW)).await?;
    assert_eq!((answer.status, answer.location()), (303, "/account?reset"));
    // The form belonged to the visit before the sign-in.
    assert_eq!(visitor.post("/new-password", &form(PASSWORD)).await?.status, 403);
    assert_eq!(visitor.get(link).await?.status, 404);

    // All sessions end but that of the reset, the old password is invalid, and connected apps keep working.
    assert!(!ada.is_signed_in().await? && visitor.is_signed_in().await?);
    assert_eq!(Visitor::new(&app).sign_in("ada@example.com", PASSWORD, "").await?.status, 422);
    assert_eq!(ada.sign_in("ada@example.com", NEW, "").await?.status, 303);
    let access = tokens["access_token"].as_str().context("a token")?;
    assert_eq!(app.get("/usage", access).await?.0, 200);
    let email = server.wait_for(1).await?;
    assert!(email.text().contains("was changed"), "{}", email.data);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn password_reset_does_not_reveal_accounts() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[("http.trusted_proxies", "127.0.0.1/32")]).await?;
    for number in 0..8 {
        Visitor::with_account(&app, &format!("known{number}@example.com")).await?;
    }
    let mut seen = Vec::new();
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..8 {
        for (which, name) in ["known", "nobody"].into_iter().enumerate() {
            let email = format!("{name}{number}@example.com");
            let mut visitor = Visitor::new(&app);
            visitor.headers.push(("x-forwarded-for", format!("2001:db8:{number}:{which}::1")));
            let form_token = visitor.get("/forgotten-password").await?.hidden_field("form_token")?;
            let before = Instant::now();
            let answer =
                visitor.post("/forgotten-password", &[("form_token", &*form_token), ("email", &*email)]).await?;
            times[which].push(before.elapsed());
            assert_eq!(answer.status, 200);
            seen.push(answer.body.replace(&email, ""));
        }
    }
    assert!(seen.iter().all(|body| *body == seen[0]), "the answers differ");
    let [known, unknown] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    eprintln!("the median answer took {known:?} for known addresses and {unknown:?} for unknown ones");
    server.wait_for(7).await?;
    assert_eq!(server.emails().len(), 8, "no email is sent without an account");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn password_reset_emails_per_user_are_limited() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    Visitor::with_account(&app, "eve@example.com").await?;
    for _ in 0..8 {
        assert_eq!(request_password_reset(&app, "ada@example.com").await?.status, 200);
    }
    // This email is sent after all emails to the other user.
    assert_eq!(request_password_reset(&app, "eve@example.com").await?.status, 200);
    server.wait_for(5).await?;
    app.finish().await?;
    let to_ada = server.emails().iter().filter(|email| email.envelope.1 == "<ada@example.com>").count();
    assert_eq!((to_ada, server.emails().len()), (5, 6));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn emails_are_sent_over_tls_with_authentication() -> Result<()> {
    let dir = tempfile::tempdir()?;
    for tls_mode in [TlsMode::StartTls, TlsMode::Tls] {
        let server = MailServer::start(tls_mode).await?;
        let ca_file = dir.path().join("ca.pem");
        std::fs::write(&ca_file, server.certificate())?;
        let ca_file = ca_file.display().to_string();
        let app = start_app_with_mail(&server, "user%40example.com:s%3Aecret@", &[("mail.ca_file", &*ca_file)]).await?;
        Visitor::with_account(&app, "ada@example.com").await?;
        request_password_reset(&app, "ada@example.com").await?;
        let email = server.wait_for(0).await?;
        assert!(email.in_tls, "{tls_mode:?}");
        // RFC 4616: empty authorization identity, user and password, separated by NUL.
        use base64::Engine as _;
        let expected = base64::prelude::BASE64_STANDARD.encode("\0user@example.com\0s:ecret");
        assert_eq!(email.auth, Some(format!("PLAIN {expected}")), "{tls_mode:?}");
        app.finish().await?;

        // A server with an untrusted certificate receives nothing.
        let stranger = MailServer::start(tls_mode).await?;
        let app = start_app_with_mail(&stranger, "user:secret@", &[]).await?;
        Visitor::with_account(&app, "ada@example.com").await?;
        request_password_reset(&app, "ada@example.com").await?;
        app.finish().await?;
        assert_eq!(stranger.emails().len(), 0, "{tls_mode:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_refusals_are_retried_and_permanent_ones_are_not() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    server.reply_with(&["451 come back later", "250 taken", "550 no such person"]);
    request_password_reset(&app, "ada@example.com").await?;
    let (first, second) = (server.wait_for(0).await?, server.wait_for(1).await?);
    assert_eq!(first.link()?, second.link()?);
    request_password_reset(&app, "ada@example.com").await?;
    server.wait_for(2).await?;
    // The shutdown makes all remaining attempts.
    app.finish().await?;
    assert_eq!(server.emails().len(), 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reset_links_are_logged_only_without_a_mail_server() -> Result<()> {
    let log = Log::capture();
    let silent = start_app(&[]).await?;
    Visitor::with_account(&silent, "ada@example.com").await?;
    let page = request_password_reset(&silent, "ada@example.com").await?;
    assert!(page.body.contains("Contact your administrator"), "{}", page.body);
    let public_url = silent.service.public_url().to_owned();
    // Stop the service first, because it writes pending emails on shutdown.
    silent.finish().await?;
    let link = log.text()?.split("link=").nth(1).and_then(|rest| rest.split_whitespace().next().map(str::to_owned));
    let link = link.context("no link for the operator")?;
    let link = link.trim_matches('"').to_owned();
    assert!(link.starts_with(&format!("{public_url}/new-password?token=gpr_")), "{link}");

    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    request_password_reset(&app, "ada@example.com").await?;
    let reset = server.wait_for(0).await?.link()?;
    let mut visitor = Visitor::new(&app);
    let page = visitor.get(path(&app, &reset)?).await?;
    let (form_token, token) = (page.hidden_field("form_token")?, page.hidden_field("token")?);
    let team = super::users::first_team(&mut ada).await?;
    super::users::invite(&mut ada, &team, "bob@example.com", "member").await?;
    let invitation = server.wait_for(1).await?.link()?;
    assert_eq!(Visitor::new(&app).get(path(&app, &invitation)?).await?.status, 200);
    let form = [("form_token", &*form_token), ("token", &*token), ("password", NEW)];
    assert_eq!(visitor.post("/new-password", &form).await?.status, 303);
    app.finish().await?;
    let text = log.text()?;
    assert!(text.lines().count() > 20, "the log is not captured:\n{text}");
    for secret in [token, NEW.to_owned(), invitation.split_once("token=").context("a token")?.1.to_owned()] {
        let line = text.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "a secret is in the log");
    }
    Ok(())
}
