//! What a log may not show, and what is not kept.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use grabd_domain::credentials::Environment;
use grabd_engine::rpc::Public;
use grabd_engine::{accounts, oauth};
use grabd_proto::v1::GetUsageRequest;
use grabd_proto::v1::usage_service_client::UsageServiceClient;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::house::{House, PASSWORD, Wishes, and, exchange, fields, pair, refresh, request, text, value};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Everything that happens to an app and a person, with everything logged that anybody says.
#[tokio::test]
async fn no_secret_is_ever_in_a_log_or_in_the_debug_of_what_holds_it() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    let logging = tracing::subscriber::set_default(subscriber);
    let house = House::with(Wishes { sign_up: true, ..Wishes::default() }).await;
    let core = &house.core;
    let mut debugged = String::new();
    let mut secrets = vec![PASSWORD.to_owned()];

    let wrong = "a wrong but long password";
    secrets.push(wrong.to_owned());
    accounts::sign_in(core, "ada@example.com", wrong).await.unwrap_err();
    let session = accounts::sign_in(core, "ada@example.com", PASSWORD).await.unwrap();
    let signed_up = accounts::sign_up(core, "bob@example.com", PASSWORD).await.unwrap();
    debugged += &format!("{session:?} {signed_up:?}");
    secrets.extend([session.expose().to_owned(), signed_up.expose().to_owned()]);
    accounts::find_session(core, &session).await.unwrap().unwrap();

    let registered = house.register(json!({ "token_endpoint_auth_method": "client_secret_post" })).await;
    let (client, secret) = (text(&registered["client_id"]), text(&registered["client_secret"]));
    secrets.push(secret.clone());
    let asked = oauth::check_request(core, &request(&client)).await.unwrap();
    let ticket = oauth::ask(core, house.user, &asked).await.unwrap();
    debugged += &format!("{asked:?} {ticket:?}");
    secrets.push(ticket.expose().to_owned());
    oauth::redeem(core, house.user, ticket.expose()).await.unwrap().unwrap();
    let answer = house.allow(&request(&client), Environment::Live).await;
    let code = value(&answer, "code").to_owned();
    secrets.push(code.clone());

    let proven = |form| and(form, "client_secret", &secret);
    let tokens = pair(&house.token(&proven(exchange(&client, &code))).await.unwrap());
    let next = pair(&house.token(&proven(refresh(&client, &tokens.refresh))).await.unwrap());
    secrets.extend([tokens.access.clone(), tokens.refresh.clone(), next.access.clone(), next.refresh.clone()]);
    let (_, key) =
        accounts::issue_key(&house.store, house.team, Environment::Live, "a key", crate::house::NOW).await.unwrap();
    secrets.push(key.expose().to_owned());
    let mut door = UsageServiceClient::new(Public::new(core, false).await.unwrap().gated());
    for credential in [next.access.as_str(), key.expose(), "gat_unknown"] {
        let mut usage = tonic::Request::new(GetUsageRequest {});
        usage.metadata_mut().insert("authorization", format!("Bearer {credential}").parse().unwrap());
        drop(door.get_usage(usage).await);
    }
    let refused = [
        house.token(&exchange(&client, &code)).await.unwrap_err(),
        house.token(&proven(exchange(&client, &code))).await.unwrap_err(),
        house.token(&proven(refresh(&client, &next.refresh))).await.unwrap_err(),
    ];
    debugged += &format!("{refused:?}");
    let revocation = proven(fields(&[("client_id", &client), ("token", &next.refresh)]));
    oauth::revoke(core, &revocation, None).await.unwrap();
    accounts::sign_out(core, &session).await.unwrap();
    house.end().await;
    drop(logging);

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("an app was allowed") && log.contains("used again"), "it was listened to: {log}");
    for secret in secrets {
        // Neither it nor what is left of it without its prefix and its last characters.
        let part = &secret[4..secret.len() - 4];
        assert!(!log.contains(part), "{secret} is in the log");
        assert!(!debugged.contains(part), "{secret} is in {debugged}");
    }
}

/// The secrets are drawn, so a text that is in the file of the database is there because somebody put it there.
#[tokio::test]
async fn the_database_holds_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("grabd.db");
    let house = House::at(&format!("sqlite://{}", file.display()), Wishes::default()).await;
    let core = &house.core;
    let session = accounts::sign_in(core, "ada@example.com", PASSWORD).await.unwrap();
    let registered = house.register(json!({ "token_endpoint_auth_method": "client_secret_post" })).await;
    let (client, secret) = (text(&registered["client_id"]), text(&registered["client_secret"]));
    let asked = oauth::check_request(core, &request(&client)).await.unwrap();
    let ticket = oauth::ask(core, house.user, &asked).await.unwrap();
    let answer = house.allow(&request(&client), Environment::Live).await;
    let code = value(&answer, "code").to_owned();
    let form = and(exchange(&client, &code), "client_secret", &secret);
    let tokens = pair(&house.token(&form).await.unwrap());
    house.end().await;
    let bytes = std::fs::read(&file).unwrap();
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("ada@example.com") && holds(&client), "it was looked at");
    for secret in [PASSWORD, session.expose(), ticket.expose(), &secret, &code, &tokens.access, &tokens.refresh] {
        assert!(!holds(secret), "{secret}");
    }
}
