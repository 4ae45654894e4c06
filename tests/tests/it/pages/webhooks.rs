//! Webhooks through the pages: made, told, looked through, sent again, and gone, with secrets that are shown once.

use anyhow::{Context, Result, ensure};
use grabd_domain::ids::TeamId;
use grabd_tests::harness::{ALLOWED, Harness, REFUSED};
use grabd_tests::receiver::Receiver;

use super::log::Log;
use super::team::{capture, team_of};
use super::visitor::{Answer, Visitor, open_house};
use crate::webhooks::verify;

/// A service whose messages reach a receiver without TLS.
async fn house() -> Result<(Harness, Receiver)> {
    let receiver = Receiver::start(ALLOWED).await?;
    Ok((open_house(&[("webhooks.allow_http", "true")]).await?, receiver))
}

/// Sends a form that has nothing but its token.
pub(super) async fn press(visitor: &mut Visitor<'_>, path: &str) -> Result<Answer> {
    send(visitor, path, &[]).await
}

async fn send(visitor: &mut Visitor<'_>, path: &str, fields: &[(&str, &str)]) -> Result<Answer> {
    // Every page of somebody who is signed in has a form.
    let form_token = visitor.get("/apps").await?.hidden("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

/// Makes a webhook; the path of its page, and its secret.
pub(super) async fn make(visitor: &mut Visitor<'_>, team: TeamId, fields: &[(&str, &str)]) -> Result<(String, String)> {
    let answer = send(visitor, &format!("/teams/{team}/webhooks/new"), fields).await?;
    ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
    let page = answer.body.split("<a class=\"button\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    Ok((page.context("the way on")?.to_owned(), secret(&answer)?))
}

/// The secret that a page shows.
fn secret(answer: &Answer) -> Result<String> {
    let value = answer.body.split("id=\"secret\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    Ok(value.context("a secret")?.replace("&#43;", "+"))
}

/// The paths of the messages that a webhook's page lists, the newest first.
fn listed(page: &Answer) -> Vec<String> {
    let log = page.body.split("<ul class=\"log\">").nth(1).and_then(|rest| rest.split("</ul>").next());
    let links = log.unwrap_or_default().split("href=\"").skip(1);
    links.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The page of a message, once its attempt has ended.
async fn ended(visitor: &mut Visitor<'_>, path: &str) -> Result<Answer> {
    let path = path.split('?').next().unwrap_or_default();
    for _ in 0..10 {
        let page = visitor.get(&format!("{path}?sent")).await?;
        if !page.body.contains("Look again") {
            return Ok(page);
        }
    }
    anyhow::bail!("{path} is still being sent")
}

fn assert_says(page: &Answer, words: &[&str]) {
    for words in words {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_of_the_pages_is_told_again_and_again_and_its_secrets_are_shown_once() -> Result<()> {
    let log = Log::capture();
    let (house, receiver) = house().await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 5).await?;
    let url = receiver.url();
    let fields = [("url", &*url), ("events", "grab.done"), ("environment", "live"), ("description", "prod & <b>")];
    let (webhook, first) = make(&mut ada, team, &fields).await?;
    assert_says(&ada.get(&webhook).await?, &["Nothing yet.", "prod &#38; &#60;b&#62;", "grab.done"]);

    // A real capture is told, signed, and listed with what it says.
    let site = house.site.url("/tiny");
    let grab = capture(&mut ada, team, &[("url", &site), ("environment", "live")]).await?.location().to_owned();
    let told = receiver.wait_for(0).await?;
    verify(&first, &told)?;
    let id = grab.rsplit('/').next().unwrap_or_default();
    assert_eq!((&told.json()?["type"], &told.json()?["data"]["id"]), (&"grab.done".into(), &id.into()));
    let messages = listed(&ada.get(&webhook).await?);
    assert_eq!(messages.len(), 1);
    let page = ended(&mut ada, &messages[0]).await?;
    let id_said = format!("&#34;id&#34;: &#34;{id}&#34;");
    let link = format!("href=\"{grab}\"");
    let said =
        ["Delivered", "Answered 200 after ", "<dd>1</dd>", "A capture is done", &told.signed[0], &id_said, &link];
    assert_says(&page, &said);
    assert_says(&ada.get(&webhook).await?, &["Delivered", "Answered 200 after ", "1 attempt<"]);
    assert_says(&ada.get(&format!("/teams/{team}/webhooks")).await?, &["Last message", "Delivered", &webhook]);

    // The same message once more.
    let again = press(&mut ada, &format!("{}/again", messages[0])).await?;
    assert_eq!((again.status, again.location()), (303, &*format!("{}?sent", messages[0])));
    let repeated = receiver.wait_for(1).await?;
    assert_eq!((&repeated.signed[0], &repeated.body), (&told.signed[0], &told.body));
    assert_says(&ended(&mut ada, &messages[0]).await?, &["Delivered", "<dd>2</dd>"]);

    // A new secret signs beside the one before.
    assert_says(&ada.get(&format!("{webhook}/secret")).await?, &["For 24 hours"]);
    let rotated = press(&mut ada, &format!("{webhook}/secret")).await?;
    let second = secret(&rotated)?;
    assert_ne!(first, second);
    assert_says(&rotated, &["The one before signs too until"]);
    let sent = press(&mut ada, &format!("{webhook}/test")).await?;
    let test = receiver.wait_for(2).await?;
    verify(&first, &test)?;
    verify(&second, &test)?;
    assert_says(&ended(&mut ada, sent.location()).await?, &["A test", "webhook.test", "Answered 200"]);

    // What fails says how, and when it is tried again.
    receiver.answers(&[500]);
    let sent = press(&mut ada, &format!("{webhook}/test")).await?;
    let failed = ended(&mut ada, sent.location()).await?;
    assert_says(&failed, &["Failed so far", "Answered 500 after ", "Next attempt", "in "]);

    // No other page has a secret, and neither has the log.
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
    house.finish().await?;
    let log = log.text()?;
    assert!(log.lines().count() > 20, "the log is not captured:\n{log}");
    for secret in [&first, &second] {
        let key = secret.trim_start_matches("whsec_");
        assert_eq!(log.lines().find(|line| line.contains(key)), None, "a secret is in the log");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_changed_switched_off_and_on_and_deleted() -> Result<()> {
    let (house, receiver) = house().await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 0).await?;
    let url = receiver.url();
    let fields = [("url", &*url), ("events", "*"), ("environment", "test")];
    let (webhook, _) = make(&mut ada, team, &fields).await?;
    assert_says(&ada.get(&webhook).await?, &["Only test messages are sent here", "everything"]);

    let elsewhere = url.replace("/hook", "/elsewhere");
    let changes = [("url", &*elsewhere), ("events", "grab.done"), ("events", "grab.failed"), ("description", "x")];
    let answer = send(&mut ada, &format!("{webhook}/change"), &changes).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{webhook}?changed")));
    assert_says(&ada.get(answer.location()).await?, &["The changes are kept", &elsewhere, "grab.done, grab.failed"]);
    let form = ada.get(&format!("{webhook}/change")).await?;
    assert_says(&form, &["value=\"grab.done\" checked", "value=\"grab.failed\" checked", "value=\"*\"><span>"]);
    press(&mut ada, &format!("{webhook}/test")).await?;
    assert_eq!(receiver.wait_for(0).await?.path, "/elsewhere");

    let answer = press(&mut ada, &format!("{webhook}/off")).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{webhook}?off")));
    let off = ada.get(answer.location()).await?;
    assert_says(&off, &["The webhook is switched off.", "Switch on"]);
    assert!(!off.body.contains("Send a test"), "{}", off.body);
    let refused = press(&mut ada, &format!("{webhook}/test")).await?;
    assert!(refused.status == 409 && refused.body.contains("is switched off"), "{} {}", refused.status, refused.body);
    let answer = press(&mut ada, &format!("{webhook}/on")).await?;
    assert_says(&ada.get(answer.location()).await?, &["The webhook is switched on.", "Send a test"]);

    // A receiver that says it is gone is believed.
    receiver.answers(&[410]);
    let sent = press(&mut ada, &format!("{webhook}/test")).await?;
    assert_says(&ended(&mut ada, sent.location()).await?, &["Given up", "Answered 410"]);
    assert_says(&ada.get(&webhook).await?, &["Your receiver answered 410"]);
    press(&mut ada, &format!("{webhook}/on")).await?;

    // What cannot be sent, here because no resolver answers, says so.
    let nowhere = [("url", "https://nowhere.example/"), ("events", "*")];
    send(&mut ada, &format!("{webhook}/change"), &nowhere).await?;
    let sent = press(&mut ada, &format!("{webhook}/test")).await?;
    assert_says(&ended(&mut ada, sent.location()).await?, &["Failed so far", "No answer after "]);

    // More than a page of messages.
    for _ in 0..25 {
        press(&mut ada, &format!("{webhook}/test")).await?;
    }
    let page = ada.get(&webhook).await?;
    assert_eq!(listed(&page).len(), 25);
    let older = page.body.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    let older = ada.get(older.context("older ones")?).await?;
    assert_eq!(listed(&older).len(), 3);
    assert_says(&older, &["Newest"]);
    assert!(!older.body.contains("rel=\"next\""), "{}", older.body);
    assert_eq!(ada.get(&format!("{webhook}?starting_after=x")).await?.status, 400);

    let answer = press(&mut ada, &format!("{webhook}/delete")).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("/teams/{team}/webhooks?deleted")));
    assert_says(&ada.get(answer.location()).await?, &["The webhook is deleted.", "There is no webhook yet"]);
    assert_eq!(ada.get(&webhook).await?.status, 404);
    assert_eq!(press(&mut ada, &format!("{webhook}/delete")).await?.status, 404);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_registered_is_said_beside_its_field() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 0).await?;
    let new = format!("/teams/{team}/webhooks/new");
    // It does not speak TLS.
    let receiver = Receiver::start(ALLOWED).await?;
    let url = receiver.url().replace("http:", "https:");
    let good = [("url", &*url), ("events", "*"), ("environment", "live")];
    let (webhook, _) = make(&mut ada, team, &good).await?;
    let (refused, plain, long) = (format!("https://{REFUSED}/"), "http://hooks.example.com/", "a".repeat(201));
    for (field, value, said) in [
        ("url", "", "Write the address of your receiver."),
        ("url", plain, "must be an https URL of a public address; it was &#34;http://hooks.example.com/&#34;."),
        ("url", "https://user:word@example.com/", "without a user name"),
        ("url", &*refused, "Messages are sent to public addresses alone."),
        ("url", "https://localhost/", "must be a URL whose host is a public address; it was &#34;localhost&#34;."),
        ("events", "", "Choose what it hears of."),
        ("events", "grab.lost", "it was &#34;grab.lost&#34;."),
        ("description", &*long, "must be a text of at most 200 characters, without NUL; it was 201 characters."),
        ("environment", "", "Choose whether it hears of live captures."),
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
            assert_says(&answer, &[said, &format!("<a href=\"#{field}\">"), &format!("id=\"{field}-error\"")]);
            // What was filled in stays.
            let url = fields.iter().find(|(name, _)| *name == "url").context("url")?.1;
            assert_says(&answer, &[&format!("value=\"{url}\"")]);
        }
    }
    for _ in 1..10 {
        make(&mut ada, team, &good).await?;
    }
    let full = send(&mut ada, &new, &good).await?;
    assert_eq!(full.status, 422);
    assert_says(&full, &["The team has 10 webhooks there, as many as it may have."]);
    let (other, _) = make(&mut ada, team, &[good[0], good[1], ("environment", "test")]).await?;
    let list = ada.get(&format!("/teams/{team}/webhooks")).await?;
    assert_eq!(list.body.matches("<h2 class=\"small-head\">").count(), 11);

    // Nobody else's page does anything of it.
    let sent = press(&mut ada, &format!("{other}/test")).await?;
    let message = sent.location().split('?').next().unwrap_or_default().to_owned();
    let form_token = ada.get("/apps").await?.hidden("form_token")?;
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
    assert_eq!(listed(&ada.get(&other).await?), [message]);
    house.finish().await
}
