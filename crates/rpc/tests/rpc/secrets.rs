//! Secrets appear neither in the log nor in the database.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use grabd_domain::credentials::Environment;
use grabd_engine::{accounts, oauth};
use grabd_proto::v1::GetUsageRequest;
use grabd_proto::v1::usage_service_client::UsageServiceClient;
use grabd_rpc::PublicServices;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::test_core::{
    HOME, PASSWORD, TestCore, TestOptions, add_field, exchange, fields, pair, refresh, request, signed_in, text, value,
};

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

/// Runs every account and OAuth operation with all log levels enabled.
#[tokio::test]
async fn secrets_are_neither_logged_nor_in_debug_output() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    let logging = tracing::subscriber::set_default(subscriber);
    let test = TestCore::with(TestOptions { sign_up: true, ..TestOptions::default() }).await;
    let core = &test.core;
    let mut debugged = String::new();
    let mut secrets = vec![PASSWORD.to_owned()];

    let wrong = "a wrong but long password";
    secrets.push(wrong.to_owned());
    accounts::sign_in(core, "ada@example.com", wrong, &HOME).await.unwrap_err();
    let session = signed_in(core, "ada@example.com", PASSWORD, &HOME).await;
    let Ok(accounts::SignedUp::SignedIn(signed_up)) =
        accounts::sign_up(core, "bob@example.com", PASSWORD, HOME.address).await
    else {
        panic!("no session")
    };
    let device = accounts::remember_device(core, &signed_up, &HOME).await.unwrap();
    debugged += &format!("{session:?} {signed_up:?} {device:?}");
    secrets.extend([session.expose().to_owned(), signed_up.expose().to_owned(), device.expose().to_owned()]);
    accounts::find_session(core, &session).await.unwrap().unwrap();

    let registered = test.register(json!({ "token_endpoint_auth_method": "client_secret_post" })).await;
    let (client, secret) = (text(&registered["client_id"]), text(&registered["client_secret"]));
    secrets.push(secret.clone());
    let checked = oauth::check_request(core, &request(&client)).await.unwrap();
    let ticket = oauth::create_consent_request(core, test.user, &checked).await.unwrap();
    debugged += &format!("{checked:?} {ticket:?}");
    secrets.push(ticket.expose().to_owned());
    oauth::take_consent_request(core, test.user, ticket.expose()).await.unwrap().unwrap();
    let redirect = test.allow(&request(&client), Environment::Live).await;
    let code = value(&redirect, "code").to_owned();
    secrets.push(code.clone());

    let with_secret = |form| add_field(form, "client_secret", &secret);
    let tokens = pair(&test.token(&with_secret(exchange(&client, &code))).await.unwrap());
    let next = pair(&test.token(&with_secret(refresh(&client, &tokens.refresh))).await.unwrap());
    secrets.extend([tokens.access.clone(), tokens.refresh.clone(), next.access.clone(), next.refresh.clone()]);
    let (_, key) =
        accounts::issue_key(&test.store, test.team, Environment::Live, "a key", crate::test_core::NOW).await.unwrap();
    secrets.push(key.expose().to_owned());
    let mut usage_client = UsageServiceClient::new(PublicServices::new(core, false).await.unwrap().gated());
    for credential in [next.access.as_str(), key.expose(), "gat_unknown"] {
        let mut usage = tonic::Request::new(GetUsageRequest {});
        usage.metadata_mut().insert("authorization", format!("Bearer {credential}").parse().unwrap());
        drop(usage_client.get_usage(usage).await);
    }
    let refused = [
        test.token(&exchange(&client, &code)).await.unwrap_err(),
        test.token(&with_secret(exchange(&client, &code))).await.unwrap_err(),
        test.token(&with_secret(refresh(&client, &next.refresh))).await.unwrap_err(),
    ];
    debugged += &format!("{refused:?}");
    let revocation = with_secret(fields(&[("client_id", &client), ("token", &next.refresh)]));
    oauth::revoke(core, &revocation, None).await.unwrap();
    accounts::sign_out(core, &session).await.unwrap();
    test.end().await;
    drop(logging);

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("app access granted") && log.contains("reused"), "the log is not captured: {log}");
    for secret in secrets {
        // Without the prefix and the last characters, so that partly redacted secrets are found as well.
        let part = &secret[4..secret.len() - 4];
        assert!(!log.contains(part), "{secret} is in the log");
        assert!(!debugged.contains(part), "{secret} is in {debugged}");
    }
}

/// The secrets are random, so a match in the database file means that one was stored.
#[tokio::test]
async fn database_contains_no_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("grabd.db");
    let test = TestCore::at(&format!("sqlite://{}", file.display()), TestOptions::default()).await;
    let core = &test.core;
    let session = signed_in(core, "ada@example.com", PASSWORD, &HOME).await;
    let device = accounts::remember_device(core, &session, &HOME).await.unwrap();
    let registered = test.register(json!({ "token_endpoint_auth_method": "client_secret_post" })).await;
    let (client, secret) = (text(&registered["client_id"]), text(&registered["client_secret"]));
    let checked = oauth::check_request(core, &request(&client)).await.unwrap();
    let ticket = oauth::create_consent_request(core, test.user, &checked).await.unwrap();
    let redirect = test.allow(&request(&client), Environment::Live).await;
    let code = value(&redirect, "code").to_owned();
    let form = add_field(exchange(&client, &code), "client_secret", &secret);
    let tokens = pair(&test.token(&form).await.unwrap());
    test.end().await;
    let bytes = std::fs::read(&file).unwrap();
    let contains = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(contains("ada@example.com") && contains(&client), "the file does not have the data of this test");
    for secret in
        [PASSWORD, session.expose(), device.expose(), ticket.expose(), &secret, &code, &tokens.access, &tokens.refresh]
    {
        assert!(!contains(secret), "{secret}");
    }
}
