//! `grabd admin webhook …`.

use anyhow::{Context, bail};
use clap::Subcommand;
use grabd_domain::ids::EndpointId;
use grabd_engine::clock::Clock;
use grabd_engine::webhooks;
use grabd_store::Store;
use serde_json::json;

use super::output::CommandOutput;
use crate::config::Config;
use crate::wiring;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a new signing secret for a webhook, which is shown only once. For 24 hours, messages are signed with both.
    Rotate {
        /// The webhook's id.
        webhook: String,
    },
}

pub(super) async fn run(config: &Config, store: &Store, command: Command) -> anyhow::Result<CommandOutput> {
    let Command::Rotate { webhook } = command;
    let id: EndpointId = webhook.parse().ok().with_context(|| format!("`{webhook}` is not the id of a webhook"))?;
    let (vault, now) = (wiring::open_vault(config)?, Clock::system().now());
    let rotated = webhooks::rotate_secret_as_operator(store, &vault, id, now).await?;
    let Some((webhook, secret)) = rotated else { bail!("there is no webhook {id}") };
    let (url, secret) = (webhook.url.to_string(), secret.reveal());
    let text = format!("webhook  {url}\nsecret   {secret}\nThe secret is not shown again.");
    Ok(CommandOutput::ok(text, json!({ "webhook_id": id.to_string(), "url": url, "secret": secret })))
}
