//! Usage and billing pages: they show what the ledger contains, and purchases are granted once, by Stripe's event.

use std::io::Cursor;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use grabd::serve::{Rendering, Timeouts};
use grabd_domain::admission::Payer;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::Environment;
use grabd_domain::credits::{Balance, EntryKind};
use grabd_domain::grabs::{Class, Failure, FailureReason, ImageKey, RenderMetadata, State};
use grabd_domain::ids::{LeaseToken, SessionId, TeamId};
use grabd_domain::{Day, Timestamp};
use grabd_engine::clock::Clock;
use grabd_engine::{accounts, billing, random};
use grabd_images::Images;
use grabd_store::grabs::{Completion, Created, FailGrab, FailureSource, NewGrab, NewLease, NewPlaceholder};
use grabd_tests::harness::{ALLOWED, TestApp};
use grabd_tests::mail_server::{MailServer, TlsMode};
use grabd_tests::stripe::{FakeStripe, Reply, SECRET_KEY, WEBHOOK_SECRET, completed, event, payment_id, signature};
use serde_json::{Value, json};
use uuid::Uuid;

use super::mail::start_app_with_mail;
use super::team::team_of;
use super::users::invite;
use super::verify_email::use_link;
use super::visitor::{PageResponse, Visitor, start_app, start_capturing_app};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A service with open sign-up that sells credits through the fake Stripe.
pub(super) struct BillingApp {
    pub(super) app: TestApp,
    pub(super) stripe: FakeStripe,
}

impl BillingApp {
    pub(super) async fn open() -> Result<Self> {
        Self::with(Rendering::None).await
    }

    pub(super) async fn with(rendering: Rendering) -> Result<Self> {
        let stripe = FakeStripe::start(ALLOWED).await?;
        let url = stripe.url();
        let settings = [
            ("accounts.sign_up", "true"),
            ("billing.stripe_secret_key", SECRET_KEY),
            ("billing.stripe_webhook_secret", WEBHOOK_SECRET),
            ("billing.stripe_api_base", &url),
        ];
        let app = TestApp::start_with(0, &settings, Timeouts::default(), rendering).await?;
        Ok(Self { app, stripe })
    }

    /// Sends the event that a session is paid. Returns the result.
    async fn pay(&self, session: &Value) -> Result<String> {
        self.send("checkout.session.completed", &completed(session, true)).await
    }

    /// Sends a signed event about an object. Returns the result.
    async fn send(&self, kind: &str, object: &Value) -> Result<String> {
        let body = event(kind, object);
        let request = self.app.client.post(format!("{}/billing/stripe", self.app.base()));
        let request = request.header("stripe-signature", signature(WEBHOOK_SECRET, now(), &body)).body(body);
        let answer = request.send().await?;
        ensure!(answer.status() == 200);
        Ok(answer.text().await?)
    }
}

fn now() -> Timestamp {
    Clock::system().now()
}

/// Submits the purchase form of a package.
async fn buy(visitor: &mut Visitor<'_>, team: TeamId, package: &str) -> Result<PageResponse> {
    let form_token = visitor.get(&format!("/teams/{team}/billing")).await?.hidden_field("form_token")?;
    let form = [("form_token", &*form_token), ("package", package)];
    visitor.post(&format!("/teams/{team}/billing/checkout"), &form).await
}

/// The cells of the table whose label starts with `name`, by row.
fn table(page: &PageResponse, name: &str) -> Result<Vec<Vec<String>>> {
    let table = page.body.split(&format!(" aria-label=\"{name}")).nth(1).and_then(|rest| rest.split("</table>").next());
    let table = table.with_context(|| format!("no table {name:?} in {}", page.body))?;
    let body = table.split("<tbody>").nth(1).context("a body")?;
    let body = body.replace("</th>", "</td>");
    let cells = |row: &str| row.split_inclusive("</td>").filter(|cell| cell.ends_with("</td>")).map(text).collect();
    Ok(body.split("</tr>").filter(|row| row.contains("<td")).map(cells).collect())
}

/// The text of HTML, in one line.
fn text(html: &str) -> String {
    let pieces = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    pieces.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn billing_page_shows_the_ledger() -> Result<()> {
    let app = start_capturing_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    let path = format!("/teams/{team}/billing");
    let store = app.service.store();
    let ends = now() + DAY * 30;
    accounts::start_subscription(store, team, 2, ends, "ref:invoice <7>", now()).await?;
    for (environment, url, count) in [
        (Environment::Live, app.site.url("/tiny"), 3),
        (Environment::Live, app.site.url("/status/403"), 1),
        (Environment::Test, "https://example.com/".to_owned(), 2),
        (Environment::Test, "https://blocked.test/".to_owned(), 1),
    ] {
        let (_, key) = accounts::issue_key(store, team, environment, "x", now()).await?;
        for _ in 0..count {
            let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(key.expose());
            request.json(&json!({ "url": url })).send().await?;
        }
    }

    let page = ada.get(&path).await?;
    assert_eq!(page.status, 200);
    let balance = Balance::of(&store.credits().lots(team).await?, now());
    assert_eq!(balance.total(), 4);
    assert!(page.body.contains("<dd>4</dd><dd>credits</dd>"), "{}", page.body);
    // The subscription is spent first, so its lot is empty.
    let lots = table(&page, "Credits by source")?;
    let [lot] = &lots[..] else { panic!("{lots:?}") };
    assert!(lot[0].starts_with("Prepaid from ") && lot[0].ends_with(" for ada@example.com"), "{lot:?}");
    assert_eq!(lot[1..], ["4 of 5", "Never"]);

    // Three captures in the last seven days.
    assert!(page.body.contains("<dt>Lasts about</dt><dd>9 days</dd>"), "{}", page.body);
    // All entries with their amounts, and the balance after each. Spent credits link to their grab, by its host.
    let entries = store.credits().ledger(team, None, 100).await?;
    let shown = table(&page, "Latest ledger entries")?;
    let amounts: Vec<i32> =
        shown.iter().map(|row| row[2].replace('\u{2212}', "-").parse()).collect::<Result<_, _>>()?;
    assert_eq!(amounts, entries.iter().map(|entry| entry.amount).collect::<Vec<_>>());
    assert_eq!(amounts, [-1, -1, -1, 2, 5]);
    assert_eq!(shown.iter().map(|row| row[3].as_str()).collect::<Vec<_>>(), ["4", "5", "6", "7", "5"]);
    let host = app.site.origin().trim_start_matches("http://").split(':').next().context("a host")?.to_owned();
    assert!(shown[0][1].starts_with(&format!("Capture {host} …")), "{:?}", shown[0]);
    assert_eq!(
        (shown[3][1].as_str(), shown[4][1].as_str()),
        ("Grant invoice &#60;7&#62;", "Grant for ada@example.com")
    );
    for (row, entry) in shown.iter().zip(&entries) {
        assert!(page.body.contains(&format!("<time datetime=\"{}\">", entry.at)), "{row:?}");
        let Some(grab) = entry.grab else { continue };
        assert!(page.body.contains(&format!("<a href=\"/teams/{team}/grabs/{grab}\">")), "{row:?}");
        assert_eq!(ada.get(&format!("/teams/{team}/grabs/{grab}")).await?.status, 200);
    }

    // Table and chart show the days that the engine reports.
    let days = billing::grabs_by_day(app.service.core(), team).await?;
    let rows = table(&page, "Captures of the last 30 days")?;
    let figures: Vec<[u64; 4]> =
        days.iter().rev().map(|day| [day.live.done, day.live.failed, day.test.done, day.test.failed]).collect();
    let shown: Vec<Vec<u64>> = rows[..30]
        .iter()
        .map(|row| row[1..].iter().map(|cell| Ok(cell.parse()?)).collect::<Result<_>>())
        .collect::<Result<_>>()?;
    assert_eq!(shown, figures);
    assert_eq!(figures[0], [3, 1, 2, 1]);
    assert!(rows[0][0].ends_with(", so far") && rows[30][0] == "Total", "{rows:?}");
    let today = page.body.rsplit("<g>").next().context("today's bar")?;
    for class in ["live", "live failed", "test", "test failed"] {
        assert_eq!(today.matches(&format!("<rect class=\"{class}\"")).count(), 1, "{class}");
    }
    assert!(page.body.contains("Live, done: 3. Live, failed: 1. Test, done: 2. Test, failed: 1. Most on "));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn ledger_is_paged_and_exported_completely() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let (store, team) = (app.service.store(), team_of(&app, "ada@example.com", 0).await?);
    let path = format!("/teams/{team}/billing");
    let none = ada.get(&path).await?;
    assert!(none.body.contains("No entries yet") && none.body.contains("No captures in the last 30 days"));
    assert!(none.body.contains("<dt>Balance</dt><dd>0</dd>") && !none.body.contains("ledger.csv"), "{}", none.body);
    for credits in 1..=103 {
        let reference = format!("=order {credits}, \"{}\"", Uuid::from_u128(credits));
        accounts::grant_prepaid(store, team, u32::try_from(credits)?, &reference, now()).await?;
    }
    let newest = ada.get(&path).await?;
    assert_eq!(table(&newest, "Latest ledger entries")?.len(), 8);
    let (mut amounts, mut balances, mut pages, mut next) = (Vec::new(), Vec::new(), 0, format!("{path}/ledger"));
    loop {
        let page = ada.get(&next).await?;
        for row in table(&page, "Ledger entries")? {
            amounts.push(row[2].clone());
            balances.push(row[3].replace(',', "").parse::<u32>()?);
        }
        pages += 1;
        let older = page.body.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
        let Some(older) = older else { break };
        next = older.to_owned();
    }
    assert_eq!(pages, 3);
    assert_eq!(amounts, (1..=103).rev().map(|credits| format!("+{credits}")).collect::<Vec<_>>());
    // The balance after an entry is the sum of all entries up to it, on every page and in the file.
    let sums: Vec<u32> = (1..=103).map(|credits| credits * (credits + 1) / 2).rev().collect();
    assert_eq!(balances, sums);
    for place in ["x", "9223372036854775808"] {
        let answer = ada.get(&format!("{path}/ledger?before={place}")).await?;
        assert!(answer.status == 400 && answer.body.contains("Invalid page link"), "{place}");
    }
    assert!(ada.get(&format!("{path}/ledger?before=-1")).await?.body.contains("No older entries"));

    let file = ada.get(&format!("{path}/ledger.csv")).await?;
    let name = format!("attachment; filename=\"grabd-ledger-{}.csv\"", Day::of(now()));
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8; header=present");
    assert_eq!((file.header("content-disposition"), file.header("cache-control")), (&*name, "no-store"));
    let expected: Vec<_> = billing::ledger_csv(app.service.core(), team, true).try_collect().await?;
    assert_eq!(file.body.as_bytes(), expected.concat());
    let entries = store.credits().ledger(team, None, 1000).await?;
    let lines: Vec<&str> = file.body.split_terminator("\r\n").collect();
    assert_eq!(lines[0], "entry,at,kind,credits,lot,grab_id,reference,host,balance");
    for ((line, entry), sum) in lines[1..].iter().zip(&entries).zip(&sums) {
        assert!(line.ends_with(&format!(",,{sum}")), "{line}");
        assert!(line.starts_with(&format!("{},{},grant,{},", entry.id, entry.at, entry.amount)), "{line}");
        assert!(line.contains(",\"'=order "), "{line}");
    }
    assert_eq!(lines.len() - 1, entries.len());
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn purchase_is_granted_once_by_the_event() -> Result<()> {
    let billing_app = BillingApp::open().await?;
    let (app, stripe) = (&billing_app.app, &billing_app.stripe);
    let mut ada = Visitor::with_account(app, "ada@example.com").await?;
    let (store, team) = (app.service.store(), team_of(app, "ada@example.com", 0).await?);
    let page = ada.get(&format!("/teams/{team}/billing")).await?;
    for words in ["25,000 credits", "50,000 credits", "125,000 credits", "Buy for $50", "Buy for $250"] {
        assert!(page.body.contains(words), "{words}");
    }
    let policy = page.header("content-security-policy");
    assert!(policy.contains("; form-action 'self' https://checkout.stripe.com; frame-ancestors 'none'"), "{policy}");

    // The redirect leads to Stripe, with the team and the return URLs.
    let answer = buy(&mut ada, team, "50k").await?;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let [session] = &stripe.sessions()[..] else { panic!("{:?}", stripe.sessions()) };
    assert_eq!(session["url"], answer.location());
    assert_eq!((&session["client_reference_id"], &session["amount_total"]), (&json!(team.to_string()), &json!(10_000)));
    assert_eq!(session["customer_email"], "ada@example.com");
    let origin = app.service.public_url();
    let way = |name: &str| Some(session[name].as_str()?.strip_prefix(origin)?.to_owned());
    let (success, cancel) = (way("success_url").context("a way back")?, way("cancel_url").context("a way back")?);

    // The return page does not mention credits before they are granted.
    let cancelled = ada.get(&cancel).await?;
    assert!(cancelled.status == 200 && cancelled.body.contains("Nothing was charged."), "{}", cancelled.body);
    let early = ada.get(&success).await?;
    assert!(early.body.contains("are added as soon as") && !early.body.contains("50,000"), "{}", early.body);
    assert!(ada.get(&format!("/teams/{team}/billing")).await?.body.contains("<dt>Balance</dt><dd>0</dd>"));
    assert_eq!(billing_app.pay(session).await?, "granted");
    let late = ada.get(&success).await?;
    assert!(late.body.contains("50,000 credits were added to") && !late.body.contains("as soon as"), "{}", late.body);

    // Repeated events and visits change nothing.
    for _ in 0..2 {
        assert_eq!(billing_app.pay(session).await?, "repeated");
        assert_eq!(ada.get(&success).await?.body, late.body);
    }
    let entries = store.credits().ledger(team, None, 10).await?;
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    let reference = format!("stripe:{}", payment_id(session));
    assert_eq!((entry.kind, entry.amount, entry.reference.as_ref()), (EntryKind::Grant, 50_000, Some(&reference)));
    let page = ada.get(&format!("/teams/{team}/billing")).await?;
    assert!(page.body.contains("<dt>Balance</dt><dd>50,000</dd>"), "{}", page.body);
    assert_eq!(
        table(&page, "Latest ledger entries")?[0][1..],
        ["Purchase ", "+50,000", "50,000"].map(|cell| if cell == "Purchase " {
            format!("Purchase {reference}")
        } else {
            cell.to_owned()
        })
    );

    // The receipt is linked as soon as Stripe has reported it.
    let url = "https://pay.stripe.com/receipts/payment/CAcaFwoVYWNjdF8x?a=1&b=2";
    for (address, result) in [("https://evil.example/", "ignored"), (url, "receipt")] {
        let charge = json!({
            "id": "ch_1", "object": "charge", "amount": 10_000, "amount_refunded": 0, "paid": true,
            "payment_intent": payment_id(session), "receipt_url": address,
        });
        assert_eq!(billing_app.send("charge.succeeded", &charge).await?, result);
    }
    for path in [format!("/teams/{team}/billing"), format!("/teams/{team}/billing/ledger")] {
        let page = ada.get(&path).await?;
        assert!(page.body.contains("<a href=\"https://pay.stripe.com/receipts/payment/CAcaFwoVYWNjdF8x?a=1&#38;b=2\""));
        assert!(page.body.contains(">Receipt <") && !page.body.contains("evil.example"), "{}", page.body);
    }

    // An earlier purchase is not shown for the next one.
    let next = buy(&mut ada, team, "25k").await?;
    let sessions = stripe.sessions();
    let session = sessions.iter().find(|session| session["url"] == next.location()).context("a second session")?;
    let success = session["success_url"].as_str().and_then(|url| url.strip_prefix(origin)).context("a way back")?;
    assert!(ada.get(success).await?.body.contains("are added as soon as"));
    for query in ["", "?since=", "?since=x", "?since=9223372036854775807"] {
        let answer = ada.get(&format!("/teams/{team}/billing/paid{query}")).await?;
        assert!(answer.status == 200 && answer.body.contains("are added as soon as"), "{query}");
    }
    billing_app.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_and_excessive_purchases_are_refused() -> Result<()> {
    let billing_app = BillingApp::open().await?;
    let (app, stripe) = (&billing_app.app, &billing_app.stripe);
    let mut ada = Visitor::with_account(app, "ada@example.com").await?;
    let mut bob = Visitor::with_account(app, "bob@example.com").await?;
    let team = team_of(app, "ada@example.com", 0).await?;
    let bobs = team_of(app, "bob@example.com", 0).await?;
    let path = format!("/teams/{team}/billing/checkout");
    let form_token = ada.get(&format!("/teams/{team}/billing")).await?.hidden_field("form_token")?;
    let foreign = bob.get(&format!("/teams/{bobs}/billing")).await?.hidden_field("form_token")?;
    for forged in [&[("package", "25k")][..], &[("package", "25k"), ("form_token", &foreign)]] {
        for _ in 0..6 {
            let answer = ada.post(&path, forged).await?;
            assert!(answer.status == 403 && answer.body.contains("has expired"), "{}", answer.body);
        }
    }
    ada.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    assert_eq!(ada.post(&path, &[("package", "25k"), ("form_token", &form_token)]).await?.status, 403);
    ada.headers.clear();
    assert_eq!(stripe.take_requests().len(), 0);
    assert_eq!(ada.get(&path).await?.status, 405);

    // Forged requests did not count. The limit is ten per hour, whatever the result.
    for (package, reply, status) in [
        ("25k", None, 303),
        ("", None, 400),
        ("1M", None, 400),
        ("25k", Some(Reply::Error(401)), 502),
        ("25k", Some(Reply::Malformed), 502),
        ("125k", None, 303),
        ("25k", None, 303),
        ("25k", None, 303),
        ("25k", None, 303),
        ("25k", None, 303),
        ("25k", None, 429),
    ] {
        stripe.reply_with(&reply.into_iter().collect::<Vec<_>>());
        let answer = buy(&mut ada, team, package).await?;
        assert_eq!(answer.status, status, "{package} {reply:?}: {}", answer.body);
        assert_eq!(answer.location().starts_with("https://checkout.stripe.com/"), status == 303);
        if status == 429 {
            let wait: u64 = answer.header("retry-after").parse()?;
            assert!(
                (300..=360).contains(&wait) && answer.body.contains("Too many purchases"),
                "{wait} {}",
                answer.body
            );
        }
    }
    assert_eq!(stripe.sessions().len(), 6);
    assert_eq!(buy(&mut bob, bobs, "25k").await?.status, 303, "each person has a limit of their own");
    for (who, team) in [(&mut ada, bobs), (&mut bob, team)] {
        let form = [("package", "25k"), ("form_token", &*form_token)];
        assert!([404, 403].contains(&who.post(&format!("/teams/{team}/billing/checkout"), &form).await?.status));
    }
    assert_eq!(stripe.sessions().len(), 7);
    billing_app.app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn billing_page_without_sales_shows_the_top_up_text() -> Result<()> {
    for (top_up, expected) in [
        ("", "Contact your administrator"),
        ("https://shop.example/?team={team}", "<a href=\"https://shop.example/?team={team}\">"),
        ("javascript:alert(1)", "Credits are sold here: javascript:alert(1)</p>"),
    ] {
        let app = start_app(&[("billing.top_up", top_up)]).await?;
        let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
        let team = team_of(&app, "ada@example.com", 0).await?;
        let page = ada.get(&format!("/teams/{team}/billing")).await?;
        let expected = expected.replace("{team}", &team.to_string());
        assert!(page.body.contains(&expected), "{expected}: {}", page.body);
        assert!(!page.body.contains("/billing/checkout") && !page.body.contains("Stripe"), "{}", page.body);
        assert!(page.header("content-security-policy").contains("; form-action 'self'; "));
        // Submitting the form anyway is refused.
        let form_token = page.hidden_field("form_token")?;
        let form = [("form_token", &*form_token), ("package", "25k")];
        let answer = ada.post(&format!("/teams/{team}/billing/checkout"), &form).await?;
        assert!(answer.status == 400 && answer.body.contains("This package is not available"), "{}", answer.body);
        app.finish().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_top_up_links_to_the_billing_page_of_the_team() -> Result<()> {
    let app = start_app(&[]).await?;
    app.create_member("ada@example.com").await?;
    let mut ada = Visitor::new(&app);
    for key in [app.live(), app.test()] {
        let (_, usage) = app.get("/usage", key).await?;
        let top_up = usage["top_up"].as_str().context("top_up")?;
        assert_eq!(top_up, format!("{}/teams/{}/billing", app.service.public_url(), app.team.team));
        let path = top_up.strip_prefix(app.service.public_url()).context("an address of ours")?;
        let answer = ada.get(path).await?;
        if answer.status == 303 {
            let next = reqwest::Url::parse(&format!("http://x.invalid{}", answer.location()))?;
            let next = next.query_pairs().next().context("a way on")?.1.into_owned();
            let answer = ada.sign_in("ada@example.com", super::visitor::PASSWORD, &next).await?;
            assert_eq!((answer.status, answer.location()), (303, path));
        }
        assert!(ada.get(path).await?.body.contains("<h1>Usage and billing</h1>"));
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_choose_when_they_get_an_alert_about_the_balance() -> Result<()> {
    let server = MailServer::start(TlsMode::None).await?;
    let app = start_app_with_mail(&server, "", &[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 6).await?;
    let path = format!("/teams/{team}/billing");
    let save = async |visitor: &mut Visitor<'_>, form_token: &str, below: &str| {
        visitor.post(&format!("{path}/alert"), &[("form_token", form_token), ("alert_below", below)]).await
    };

    let page = ada.get(&path).await?;
    assert!(page.body.contains(r#"value="100""#) && page.body.contains("owners get an e-mail"), "{}", page.body);
    let form_token = page.hidden_field("form_token")?;
    for wrong in ["", "-1", "many", "1.5", "1000001"] {
        let answer = save(&mut ada, &form_token, wrong).await?;
        let message = format!("Enter a whole number from 0 to 1,000,000, not “{wrong}”.");
        assert!(answer.status == 422 && answer.body.contains(&message), "{}", answer.body);
    }
    let answer = save(&mut ada, &form_token, " 5 ").await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{path}?saved")));
    let page = ada.get(&format!("{path}?saved")).await?;
    assert!(page.body.contains("Alert saved.") && page.body.contains(r#"value="5""#), "{}", page.body);

    // Members see the number, and cannot change it.
    let mut bob = Visitor::with_account(&app, "bob@example.com").await?;
    invite(&mut ada, &format!("/teams/{team}"), "bob@example.com", "member").await?;
    let link = server.wait_for(0).await?.link()?;
    let link = link.strip_prefix(app.service.public_url()).context("a link of this service")?;
    assert_eq!(use_link(&mut bob, link, &[]).await?.status, 303);
    let page = bob.get(&path).await?;
    assert!(page.body.contains("Alert below: 5 credits.") && !page.body.contains("alert_below"), "{}", page.body);
    let form_token = bob.get("/apps").await?.hidden_field("form_token")?;
    assert_eq!(save(&mut bob, &form_token, "7").await?.status, 403);

    // One of those who may get it is chosen.
    let page = ada.get(&path).await?;
    let candidate = page.body.split("name=\"recipient\" value=\"").nth(1).and_then(|rest| rest.get(..36));
    let candidate = candidate.with_context(|| page.body.clone())?.to_owned();
    let form_token = page.hidden_field("form_token")?;
    for (chosen, status) in [("nobody", 422), (&*candidate, 303)] {
        let form = [("form_token", &*form_token), ("recipient", chosen)];
        let answer = ada.post(&format!("{path}/alert/recipients"), &form).await?;
        assert_eq!(answer.status, status, "{chosen}: {}", answer.body);
    }
    let page = ada.get(&path).await?;
    assert!(page.body.contains(&format!("value=\"{candidate}\" checked")), "{}", page.body);

    // The balance falls to 4.
    let spec = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
    for _ in 0..2 {
        create_live_grab(&app, team, &CaptureSpec::parse(&spec)?, now(), true).await?;
    }
    let email = server.wait_for(1).await?;
    assert_eq!(email.envelope.1, "<ada@example.com>");
    assert!(email.header("Subject").is_some_and(|subject| subject.starts_with("Low balance: 4 credits left")));
    assert_eq!(email.link()?, format!("{}{path}", app.service.public_url()));
    app.finish().await
}

/// Creates 30 days of history for a team: a subscription, a purchase and captures of every kind.
pub(super) async fn history(app: &TestApp, team: TeamId) -> Result<()> {
    let (store, now) = (app.service.store(), now());
    accounts::start_subscription(store, team, 25_000, now + DAY * 310, "ref:invoice-4711", now - DAY * 55).await?;
    accounts::grant_prepaid(store, team, 25_000, "stripe:pi_3QNexampleexampleexample01", now - DAY * 12).await?;
    let spec = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
    let spec = CaptureSpec::parse(&spec)?;
    for day in (0..30_u32).rev() {
        // More captures on work days than on weekends, and a spike of failures a week ago.
        let busy = [9, 12, 14, 11, 7, 2, 1][day as usize % 7];
        let failed = if day == 7 { 9 } else { u32::from(day % 5 == 2) };
        let tests = if day > 20 { 6 } else { u32::from(day % 4 == 0) * 3 };
        for number in 0..busy + failed {
            create_live_grab(app, team, &spec, now - DAY * day, number < busy).await?;
        }
        for number in 0..tests {
            let outcome = match number % 6 {
                5 => State::Failed { finished_at: now, failure: blocked(), metadata: RenderMetadata::default() },
                _ => State::Done {
                    finished_at: now,
                    image: Some(ImageKey::new(random::random(), "png")),
                    size_bytes: 10,
                    execution_ms: 2,
                    metadata: RenderMetadata::default(),
                },
            };
            let (id, now) = (random::grab_id(now), now - DAY * day);
            let placeholder = NewPlaceholder {
                id,
                team,
                creator: None,
                spec: spec.clone(),
                now,
                outcome,
                idempotency: None,
                fingerprint: None,
                ceiling: None,
            };
            store.grabs().create_placeholder(placeholder).await?;
        }
    }
    Ok(())
}

/// A live grab on a day, ended as if a renderer had done it.
async fn create_live_grab(app: &TestApp, team: TeamId, spec: &CaptureSpec, at: Timestamp, done: bool) -> Result<()> {
    let (store, id) = (app.service.store(), random::grab_id(at));
    let (token, session) =
        (LeaseToken(Uuid::from_u128(random::random())), SessionId(Uuid::from_u128(random::random())));
    // The lease must not expire before the grab ends.
    let until = now() + DAY;
    let created = store
        .grabs()
        .create(NewGrab {
            id,
            team,
            payer: Payer::of_team(team),
            creator: None,
            class: Class::Sync,
            spec: spec.clone(),
            secrets: None,
            now: at,
            deadline_at: until,
            async_limit: 50,
            lease: Some(NewLease { token, until, session, random: random::random() }),
            wait: None,
            idempotency: None,
            fingerprint: None,
            ceiling: None,
        })
        .await?;
    let Created::Leased { upload_key } = created else { anyhow::bail!("{created:?}") };
    if done {
        let mut png = Cursor::new(Vec::new());
        image::RgbImage::new(16, 9).write_to(&mut png, image::ImageFormat::Png)?;
        let images = Images::local(app.data_dir().join("images"))?;
        images.put(&upload_key, png.into_inner().into(), Duration::from_secs(10)).await?;
    }
    match done {
        true => {
            let (size_bytes, execution_ms, metadata) = (10, 2, RenderMetadata::default());
            let completion = Completion { grab: id, token, upload_key, size_bytes, execution_ms, metadata, now: at };
            store.grabs().complete(completion).await?.context("a lease")?;
        }
        false => {
            let metadata = RenderMetadata::default();
            let failing =
                FailGrab { grab: id, source: FailureSource::Lease(token), failure: blocked(), metadata, now: at };
            store.grabs().fail(failing).await?.context("a lease")?;
        }
    }
    Ok(())
}

fn blocked() -> Failure {
    Failure::new(FailureReason::RenderBlocked, "The site asked for a password.")
}
