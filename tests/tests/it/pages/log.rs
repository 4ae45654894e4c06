//! What is secret stays out of the log, however much is logged.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use super::requests::exchange;
use super::visitor::{PASSWORD, VERIFIER, Visitor, open_house, register, request_of};

/// What this process logs.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// From now on, everything of ours, for the rest of the process: a test that captures it is alone in its own.
    pub(super) fn capture() -> Self {
        let log = Self::default();
        let everything_of_ours = tracing_subscriber::EnvFilter::new(
            "debug,chromiumoxide=info,sqlx=info,\
            grabd=trace,grabd_web=trace,grabd_engine=trace,grabd_store=trace,grabd_edge=trace",
        );
        tracing_subscriber::fmt().with_env_filter(everything_of_ours).with_ansi(false).with_writer(log.clone()).init();
        log
    }

    /// So far.
    pub(super) fn text(&self) -> Result<String> {
        Ok(String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())?)
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_whole_flow_is_logged() -> Result<()> {
    let log = Log::capture();
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let first = ada.session()?;
    let mut again = Visitor::new(&house);
    let visit = again.get("/sign-in").await?;
    let visit_secret = again.cookies["grabd_visit"].clone();
    again.sign_in("ada@example.com", "a wrong password", "").await?;
    let client = register(&house).await?;
    let request = request_of(&client, &[])?;
    let page = ada.get(&request).await?;
    let code = ada.decide(&page, "allow", &[]).await?.told("code")?;
    let tokens = exchange(&house, &request, &code).await?;
    let text = |value: &Value| value.as_str().map(str::to_owned).context("a token");
    let (access, refresh) = (text(&tokens["access_token"])?, text(&tokens["refresh_token"])?);
    let usage = house.client.get(format!("{}/usage", house.base())).bearer_auth(&access);
    assert_eq!(usage.send().await?.status(), 200);
    // What has gone wrong is where logs are most talkative: a second use of the code, which ends the grant.
    assert!(exchange(&house, &request, &code).await.is_err());
    let list = ada.get("/apps").await?;
    ada.post("/sign-out", &[("form_token", &list.hidden("form_token")?)]).await?;
    let secrets = [
        PASSWORD.to_owned(),
        "a wrong password".to_owned(),
        VERIFIER.to_owned(),
        first,
        visit_secret,
        visit.hidden("form_token")?,
        page.hidden("form_token")?,
        page.hidden("ticket")?,
        code,
        access,
        refresh,
    ];
    house.finish().await?;
    let log = log.text()?;
    assert!(log.lines().count() > 20, "the log is not captured:\n{log}");
    for secret in secrets {
        let line = log.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "a secret is in the log");
    }
    Ok(())
}
