//! Webhooks through the pages: created, delivered, listed, repeated and deleted, with secrets that are shown once.

use anyhow::{Context, Result, ensure};
use grabd_domain::ids::TeamId;
use grabd_tests::harness::{ALLOWED, REFUSED, TestApp};
use grabd_tests::receiver::Receiver;

use super::log::Log;
use super::team::{capture, team_of};
use super::visitor::{PageResponse, Visitor, start_app, start_capturing_app};
use crate::webhooks::verify;

/// Starts a service that may send messages without TLS, and a receiver.
async fn start_with_receiver() -> Result<(TestApp, Receiver)> {
    let receiver = Receiver::start(ALLOWED).await?;
    Ok((start_capturing_app(&[("webhooks.allow_http", "true")]).await?, receiver))
}

/// Submits a form that has only its token.
pub(super) async fn submit(visitor: &mut Visitor<'_>, path: &str) -> Result<PageResponse> {
    send(visitor, path, &[]).await
}

async fn send(visitor: &mut Visitor<'_>, path: &str, fields: &[(&str, &str)]) -> Result<PageResponse> {
    // Every page of a signed-in user has a form.
    let form_token = visitor.get("/apps").await?.hidden_field("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

/// Creates a webhook. Returns the path of its page and its secret.
pub(super) async fn create_webhook(
    visitor: &mut Visitor<'_>,
    team: TeamId,
    fields: &[(&str, &str)],
) -> Result<(String, String)> {
    let answer = send(visitor, &format!("/teams/{team}/webhooks/new"), fields).await?;
    ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
    let page = answer.body.split("<a class=\"button\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    Ok((page.context("the way on")?.to_owned(), secret(&answer)?))
}

/// The secret that a page shows.
fn secret(answer: &PageResponse) -> Result<String> {
    let value = answer.body.split("id=\"secret\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    Ok(value.context("a secret")?.replace("&#43;", "+"))
}

/// The paths of the messages on a webhook's page, newest first.
fn message_paths(page: &PageResponse) -> Vec<String> {
    let log = page.body.split("<ul class=\"log\">").nth(1).and_then(|rest| rest.split("</ul>").next());
    let links = log.unwrap_or_default().split("href=\"").skip(1);
    links.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The page of a message, once its attempt has ended.
async fn wait_until_sent(visitor: &mut Visitor<'_>, path: &str) -> Result<PageResponse> {
    let path = path.split('?').next().unwrap_or_default();
    for _ in 0..10 {
        let page = visitor.get(&format!("{path}?sent")).await?;
        if !page.body.contains("Refresh") {
            return Ok(page);
        }
    }
    anyhow::bail!("{path} is still being sent")
}

fn assert_says(page: &PageResponse, words: &[&str]) {
    for words in words {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_messages_are_delivered_and_secrets_shown_once() -> Result<()> {
    let log = Log::capture();
    let (app, receiver) = start_with_receiver().await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    let url = receiver.url();
    let fields = [("url", &*url), ("events", "grab.done"), ("environment", "live"), ("description", "prod & <b>")];
    let (webhook, first) = create_webhook(&mut ada, team, &fields).await?;
    assert_says(&ada.get(&webhook).await?, &["No deliveries yet.", "prod &#38; &#60;b&#62;", "grab.done"]);

    // A live capture is delivered, signed, and listed with its content.
    let site = app.site.url("/tiny");
    let grab = capture(&mut ada, team, &[("url", &site), ("environment", "live")]).await?.location().to_owned();
    let delivered = receiver.wait_for(0).await?;
    verify(&first, &delivered)?;
    let id = grab.rsplit('/').next().unwrap_or_default();
    assert_eq!((&delivered.json()?["type"], &delivered.json()?["data"]["id"]), (&"grab.done".into(), &id.into()));
    let messages = message_paths(&ada.get(&webhook).await?);
    assert_eq!(messages.len(), 1);
    let page = wait_until_sent(&mut ada, &messages[0]).await?;
    let id_member = format!("&#34;id&#34;: &#34;{id}&#34;");
    let link = format!("href=\"{grab}\"");
    let expected = [
        "Delivered",
        "Answered 200 after ",
        "<dd>1</dd>",
        "Capture done",
        &delivered.signature_headers[0],
        &id_member,
        &link,
    ];
    assert_says(&page, &expected);
    assert_says(&ada.get(&webhook).await?, &["Delivered", "Answered 200 after ", "1 attempt<"]);
    assert_says(&ada.get(&format!("/teams/{team}/webhooks")).await?, &["Last message", "Delivered", &webhook]);

    // The same message again.
    let again = submit(&mut ada, &format!("{}/again", messages[0])).await?;
    assert_eq!((again.status, again.location()), (303, &*format!("{}?sent", messages[0])));
    let repeated = receiver.wait_for(1).await?;
    assert_eq!((&repeated.signature_headers[0], &repeated.body), (&delivered.signature_headers[0], &delivered.body));
    assert_says(&wait_until_sent(&mut ada, &messages[0]).await?, &["Delivered", "<dd>2</dd>"]);

    // After a rotation, messages are signed with both secrets.
    assert_says(&ada.get(&format!("{webhook}/secret")).await?, &["For 24 hours"]);
    let rotated = submit(&mut ada, &format!("{webhook}/secret")).await?;
    let second = secret(&rotated)?;
    assert_ne!(first, second);
    assert_says(&rotated, &["The previous secret stays valid until"]);
    let sent = submit(&mut ada, &format!("{webhook}/test")).await?;
    let test = receiver.wait_for(2).await?;
    verify(&first, &test)?;
    verify(&second, &test)?;
    assert_says(&wait_until_sent(&mut ada, sent.location()).await?, &["Test message", "webhook.test", "Answered 200"]);

    // A failed delivery shows the reason and the next attempt.
    receiver.respond_with(&[500]);
    let sent = submit(&mut ada, &format!("{webhook}/test")).await?;
    let failed = wait_until_sent(&mut ada, sent.location()).await?;
    assert_says(&failed, &["Failed, will retry", "Answered 500 after ", "Next attempt", "in "]);

    // No other page contains a secret, and neither does the log.
    let mut seen = vec![failed];
    for page in ["", "/change", "/secret", "/off", "/delete"] {
        seen.push(ada.get(&format!("{webhook}{page}")).await?);
    }
    for path in [messages[0].clone(), format!("/teams/{team}/webhooks"), format!("/teams/{team}/webhooks/new")] {
        seen.push(ada.get(&path).await?);
    }
    for page in &seen {
        assert_eq!(page.status, 200);
        assert!(!page.body.contains("whsec_"), "{}", page.body);
    }
    assert_eq!(rotated.header("cache-control"), "no-store");
    app.finish().await?;
    let log = log.text()?;
    assert!(log.lines().count() > 20, "the log is not captured:\n{log}");
    for secret in [&first, &second] {
        let key = secret.trim_start_matches("whsec_");
        assert_eq!(log.lines().find(|line| line.contains(key)), None, "a secret is in the log");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_can_be_changed_disabled_enabled_and_deleted() -> Result<()> {
    let (app, receiver) = start_with_receiver().await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let url = receiver.url();
    let fields = [("url", &*url), ("events", "*"), ("environment", "test")];
    let (webhook, _) = create_webhook(&mut ada, team, &fields).await?;
    assert_says(&ada.get(&webhook).await?, &["Test captures send no events", "<dt>Events</dt><dd>all</dd>"]);

    let elsewhere = url.replace("/hook", "/elsewhere");
    let changes = [("url", &*elsewhere), ("events", "grab.done"), ("events", "grab.failed"), ("description", "x")];
    let answer = send(&mut ada, &format!("{webhook}/change"), &changes).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{webhook}?changed")));
    assert_says(&ada.get(answer.location()).await?, &["Changes saved", &elsewhere, "grab.done, grab.failed"]);
    let form = ada.get(&format!("{webhook}/change")).await?;
    assert_says(&form, &["value=\"grab.done\" checked", "value=\"grab.failed\" checked", "value=\"*\"><span>"]);
    submit(&mut ada, &format!("{webhook}/test")).await?;
    assert_eq!(receiver.wait_for(0).await?.path, "/elsewhere");

    let answer = submit(&mut ada, &format!("{webhook}/off")).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{webhook}?off")));
    let off = ada.get(answer.location()).await?;
    assert_says(&off, &["Webhook disabled.", "Enable"]);
    assert!(!off.body.contains("Send test message"), "{}", off.body);
    let refused = submit(&mut ada, &format!("{webhook}/test")).await?;
    assert!(refused.status == 409 && refused.body.contains("is disabled"), "{} {}", refused.status, refused.body);
    let answer = submit(&mut ada, &format!("{webhook}/on")).await?;
    assert_says(&ada.get(answer.location()).await?, &["Webhook enabled.", "Send test message"]);

    // A 410 response disables the webhook.
    receiver.respond_with(&[410]);
    let sent = submit(&mut ada, &format!("{webhook}/test")).await?;
    assert_says(&wait_until_sent(&mut ada, sent.location()).await?, &["Failed", "Answered 410"]);
    assert_says(&ada.get(&webhook).await?, &["your endpoint answered 410"]);
    submit(&mut ada, &format!("{webhook}/on")).await?;

    // A message that cannot be sent, here because no resolver answers, is shown as failed.
    let nowhere = [("url", "https://nowhere.example/"), ("events", "*")];
    send(&mut ada, &format!("{webhook}/change"), &nowhere).await?;
    let sent = submit(&mut ada, &format!("{webhook}/test")).await?;
    assert_says(&wait_until_sent(&mut ada, sent.location()).await?, &["Failed, will retry", "No response after "]);

    // More than one page of messages.
    for _ in 0..25 {
        submit(&mut ada, &format!("{webhook}/test")).await?;
    }
    let page = ada.get(&webhook).await?;
    assert_eq!(message_paths(&page).len(), 25);
    let older = page.body.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    let older = ada.get(older.context("older ones")?).await?;
    assert_eq!(message_paths(&older).len(), 3);
    assert_says(&older, &["Newest"]);
    assert!(!older.body.contains("rel=\"next\""), "{}", older.body);
    assert_eq!(ada.get(&format!("{webhook}?starting_after=x")).await?.status, 400);

    let answer = submit(&mut ada, &format!("{webhook}/delete")).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("/teams/{team}/webhooks?deleted")));
    assert_says(&ada.get(answer.location()).await?, &["Webhook deleted.", "No webhooks yet"]);
    assert_eq!(ada.get(&webhook).await?.status, 404);
    assert_eq!(submit(&mut ada, &format!("{webhook}/delete")).await?.status, 404);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_webhook_shows_an_error_beside_the_field() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let new = format!("/teams/{team}/webhooks/new");
    // The receiver does not support TLS.
    let receiver = Receiver::start(ALLOWED).await?;
    let url = receiver.url().replace("http:", "https:");
    let good = [("url", &*url), ("events", "*"), ("environment", "live")];
    let (webhook, _) = create_webhook(&mut ada, team, &good).await?;
    let (refused, plain, long) = (format!("https://{REFUSED}/"), "http://hooks.example.com/", "a".repeat(201));
    for (field, value, expected) in [
        ("url", "", "Enter the endpoint URL."),
        ("url", plain, "must be an https URL of a public address; it was &#34;http://hooks.example.com/&#34;."),
        ("url", "https://user:word@example.com/", "without a user name"),
        ("url", &*refused, "Messages are sent to public URLs only."),
        ("url", "https://localhost/", "must be a URL whose host is a public address; it was &#34;localhost&#34;."),
        ("events", "", "Choose at least one event."),
        ("events", "grab.lost", "it was &#34;grab.lost&#34;."),
        ("description", &*long, "must be a text of at most 200 characters, without NUL; it was 201 characters."),
        ("environment", "", "Choose an environment."),
    ] {
        for path in [&new, &format!("{webhook}/change")] {
            if field == "environment" && path != &new {
                continue;
            }
            let mut fields: Vec<_> = good.iter().filter(|(name, _)| *name != field).copied().collect();
            if field != "events" || !value.is_empty() {
                fields.push((field, value));
            }
            let answer = send(&mut ada, path, &fields).await?;
            assert_eq!(answer.status, 422, "{path} {field}={value}: {}", answer.body);
            assert_says(&answer, &[expected, &format!("<a href=\"#{field}\">"), &format!("id=\"{field}-error\"")]);
            // Entered values are kept.
            let url = fields.iter().find(|(name, _)| *name == "url").context("url")?.1;
            assert_says(&answer, &[&format!("value=\"{url}\"")]);
        }
    }
    for _ in 1..10 {
        create_webhook(&mut ada, team, &good).await?;
    }
    let full = send(&mut ada, &new, &good).await?;
    assert_eq!(full.status, 422);
    assert_says(&full, &["The team has reached its limit of webhooks: at most 10 for the team in this environment."]);
    let (other, _) = create_webhook(&mut ada, team, &[good[0], good[1], ("environment", "test")]).await?;
    let list = ada.get(&format!("/teams/{team}/webhooks")).await?;
    assert_eq!(list.body.matches("<h2><a href=\"/teams/").count(), 11);

    // Forged forms are refused.
    let sent = submit(&mut ada, &format!("{other}/test")).await?;
    let message = sent.location().split('?').next().unwrap_or_default().to_owned();
    let form_token = ada.get("/apps").await?.hidden_field("form_token")?;
    let mut paths: Vec<_> =
        ["change", "secret", "off", "on", "delete", "test"].map(|form| format!("{other}/{form}")).into();
    paths.extend([new, format!("{message}/again")]);
    for path in paths {
        let forged = [&[("form_token", "forged")], &good[..]].concat();
        assert_eq!(ada.post(&path, &forged).await?.status, 403, "{path}");
        ada.headers.push(("sec-fetch-site", "cross-site".to_owned()));
        let foreign = [&[("form_token", &*form_token)], &good[..]].concat();
        assert_eq!(ada.post(&path, &foreign).await?.status, 403, "{path}");
        ada.headers.clear();
    }
    assert_eq!(message_paths(&ada.get(&other).await?), [message]);
    app.finish().await
}
