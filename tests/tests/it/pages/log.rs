//! Secrets are never logged, at any log level.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use super::visitor::{PASSWORD, VERIFIER, Visitor, authorization_path, exchange, register, start_app};

/// The log of this process.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Captures all log messages of grabd for the rest of the process. A test that uses it must run in a process of its
    /// own.
    pub(super) fn capture() -> Self {
        let log = Self::default();
        let filter = tracing_subscriber::EnvFilter::new(
            "debug,chromiumoxide=info,sqlx=info,\
            grabd=trace,grabd_web=trace,grabd_engine=trace,grabd_store=trace,grabd_edge=trace",
        );
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(log.clone()).init();
        log
    }

    /// The log so far.
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
async fn secrets_of_an_oauth_flow_are_not_logged() -> Result<()> {
    let log = Log::capture();
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let first = ada.session()?;
    let mut again = Visitor::new(&app);
    let visit = again.get("/sign-in").await?;
    let visit_secret = again.cookies["grabd_visit"].clone();
    again.sign_in("ada@example.com", "a wrong password", "").await?;
    let client = register(&app).await?;
    let request = authorization_path(&client, &[])?;
    let page = ada.get(&request).await?;
    let code = ada.decide(&page, "allow", &[]).await?.redirect_param("code")?;
    let tokens = exchange(&app, &request, &code).await?;
    let text = |value: &Value| value.as_str().map(str::to_owned).context("a token");
    let (access, refresh) = (text(&tokens["access_token"])?, text(&tokens["refresh_token"])?);
    let usage = app.client.get(format!("{}/usage", app.base())).bearer_auth(&access);
    assert_eq!(usage.send().await?.status(), 200);
    // Errors are logged in most detail: a second use of the code, which revokes the grant.
    assert!(exchange(&app, &request, &code).await.is_err());
    let list = ada.get("/apps").await?;
    ada.post("/sign-out", &[("form_token", &list.hidden_field("form_token")?)]).await?;
    let secrets = [
        PASSWORD.to_owned(),
        "a wrong password".to_owned(),
        VERIFIER.to_owned(),
        first,
        visit_secret,
        visit.hidden_field("form_token")?,
        page.hidden_field("form_token")?,
        page.hidden_field("ticket")?,
        code,
        access,
        refresh,
    ];
    app.finish().await?;
    let log = log.text()?;
    assert!(log.lines().count() > 20, "the log is not captured:\n{log}");
    for secret in secrets {
        let line = log.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "a secret is in the log");
    }
    Ok(())
}
