//! `grabd admin key …`.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Subcommand, ValueEnum};
use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, MAX_KEY_DAYS, Scope, Scopes};
use grabd_domain::ids::{KeyId, TeamId};
use grabd_engine::accounts::{self, KEY_USAGE_PERIOD, KeyLimits};
use grabd_engine::clock::Clock;
use grabd_engine::links::{self, LinkCredentials};
use grabd_engine::vault::Vault;
use grabd_store::Store;
use grabd_store::accounts::{Key, KeyUsage};
use serde_json::json;

use super::find_team::find_team;
use super::output::CommandOutput;
use crate::config::Config;
use crate::wiring;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a key. It is shown only once. The link key and secret sign links; `grabd admin key link` shows them
    /// again.
    Create {
        /// The team's id or name.
        team: String,
        /// The key's environment.
        #[arg(long, value_enum, default_value = "live")]
        environment: EnvironmentArg,
        /// The key's name.
        #[arg(long, default_value = "made by an operator")]
        name: String,
        /// What the key may be used for: read (grabs, usage and pricing), create (grabs), manage (webhooks, and the
        /// deletion of images). By default everything.
        #[arg(long, value_enum, value_delimiter = ',')]
        scopes: Vec<ScopeArg>,
        /// Days after which the key stops working. By default it works until it is revoked.
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_KEY_DAYS)))]
        expires_days: Option<u16>,
    },
    /// Show a team's keys, without their secrets.
    List {
        /// The team's id or name.
        team: String,
    },
    /// Show what signs a key's links: its link key, and its link secret.
    Link {
        /// The key's id.
        key: String,
        /// Make a new link secret first, because somebody else knows the present one. Links that it signed stop working.
        #[arg(long)]
        replace: bool,
    },
    /// Revoke a key immediately, and with it its links.
    Revoke {
        /// The key's id.
        key: String,
    },
}

impl Command {
    /// Whether it changes nothing.
    pub(super) const fn only_reads(&self) -> bool {
        matches!(self, Self::List { .. })
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum EnvironmentArg {
    Live,
    Test,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ScopeArg {
    Read,
    Create,
    Manage,
}

impl From<ScopeArg> for Scope {
    fn from(arg: ScopeArg) -> Self {
        match arg {
            ScopeArg::Read => Self::Read,
            ScopeArg::Create => Self::Create,
            ScopeArg::Manage => Self::Manage,
        }
    }
}

pub(super) async fn run(config: &Config, store: &Store, command: Command) -> anyhow::Result<CommandOutput> {
    let now = Clock::system().now();
    match command {
        Command::Create { team, environment, name, scopes, expires_days } => {
            let team = find_team(store, &team).await?;
            let environment = match environment {
                EnvironmentArg::Live => Environment::Live,
                EnvironmentArg::Test => Environment::Test,
            };
            let limits = KeyLimits {
                // No scopes are given: all.
                scopes: Scopes::new(scopes.into_iter().map(Scope::from)).unwrap_or(Scopes::ALL),
                life: expires_days.map(|days| DAY * u32::from(days)),
            };
            let expires_at = limits.life.map(|life| (now + life).to_string());
            // Opened before, so that a key is not left without what is printed.
            let vault = wiring::open_vault(config)?;
            let (id, key) = accounts::issue_restricted_key(store, team, environment, &name, limits, now).await?;
            let link = link_credentials(store, &vault, team, id).await?;
            let (key, secret) = (key.expose(), link.secret.expose());
            let expiry = expires_at.as_ref().map_or_else(String::new, |at| format!("\nexpires      {at}"));
            Ok(CommandOutput::ok(
                format!(
                    "key id       {id}\nkey          {key}\nscopes       {}{expiry}\nlink key     {}\nlink secret  \
                     {secret}\nThe key is not shown again.",
                    limits.scopes, link.key
                ),
                json!({
                    "key_id": id.to_string(),
                    "key": key,
                    "team_id": team.to_string(),
                    "environment": environment.as_str(),
                    "scopes": scope_names(limits.scopes),
                    "expires_at": expires_at,
                    "link_key": link.key.to_string(),
                    "link_secret": secret,
                }),
            ))
        }
        Command::List { team } => {
            let team = find_team(store, &team).await?;
            let keys = store.accounts().list_keys(team).await?;
            let usage = store.accounts().key_usage(team, now - KEY_USAGE_PERIOD).await?;
            let usage_of = |key: &Key| usage.get(&key.id).copied().unwrap_or_default();
            let lines: Vec<String> = keys.iter().map(|key| line(key, usage_of(key), now)).collect();
            let rows: Vec<_> = keys
                .iter()
                .map(|key| {
                    let KeyUsage { grabs, credits } = usage_of(key);
                    json!({
                        "key_id": key.id.to_string(),
                        "environment": key.environment.as_str(),
                        "name": key.name,
                        "last4": key.last4,
                        "created_at": key.created_at.to_string(),
                        "last_used_at": key.last_used_at.map(|at| at.to_string()),
                        "revoked_at": key.revoked_at.map(|at| at.to_string()),
                        "scopes": scope_names(key.scopes),
                        "expires_at": key.expires_at.map(|at| at.to_string()),
                        "created_by": key.created_by.map(|user| user.to_string()),
                        "grabs_last_30d": grabs,
                        "credits_last_30d": credits,
                    })
                })
                .collect();
            Ok(CommandOutput::ok(lines.join("\n"), json!({ "data": rows })))
        }
        Command::Link { key, replace } => {
            let id = parse(&key)?;
            let Some(team) = links::find_key_team(store, id).await? else {
                bail!("there is no key {id}, or it was revoked; `grabd admin key list TEAM` shows them");
            };
            let vault = wiring::open_vault(config)?;
            let link = match replace {
                true => links::replace_secret(store, &vault, (team, id), None, now).await?,
                false => links::credentials(store, &vault, team, id).await?,
            };
            let link = link.with_context(|| format!("the key {id} was revoked meanwhile"))?;
            let secret = link.secret.expose();
            Ok(CommandOutput::ok(
                format!("link key     {}\nlink secret  {secret}", link.key),
                json!({ "key_id": id.to_string(), "link_key": link.key.to_string(), "link_secret": secret }),
            ))
        }
        Command::Revoke { key } => {
            let id = parse(&key)?;
            if !store.accounts().revoke_key(id, now).await? {
                bail!("there is no key {id}; `grabd admin key list TEAM` shows them");
            }
            Ok(CommandOutput::ok(format!("Key {id} is revoked."), json!({ "key_id": id.to_string(), "revoked": true })))
        }
    }
}

/// What signs the links of a key.
///
/// # Errors
/// When the secret cannot be stored or decrypted.
pub(super) async fn link_credentials(
    store: &Store,
    vault: &Vault,
    team: TeamId,
    key: KeyId,
) -> anyhow::Result<LinkCredentials> {
    let found = links::credentials(store, vault, team, key).await?;
    found.with_context(|| format!("the key {key} was revoked meanwhile"))
}

fn parse(key: &str) -> anyhow::Result<KeyId> {
    key.parse().ok().with_context(|| format!("`{key}` is not a key id; `grabd admin key list TEAM` shows them"))
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn scope_names(scopes: Scopes) -> Vec<&'static str> {
    scopes.iter().map(Scope::as_str).collect()
}

fn line(key: &Key, usage: KeyUsage, now: Timestamp) -> String {
    let prefix = key.environment.key_prefix();
    let used = key.last_used_at.map_or_else(|| "never used".to_owned(), |at| format!("used {at}"));
    let revoked = key.revoked_at.map_or_else(String::new, |at| format!("  REVOKED {at}"));
    let scopes = if key.scopes == Scopes::ALL { String::new() } else { format!("  only {}", key.scopes) };
    let expiry = match key.expires_at {
        Some(at) if at <= now => format!("  EXPIRED {at}"),
        Some(at) => format!("  expires {at}"),
        None => String::new(),
    };
    let KeyUsage { grabs, credits } = usage;
    let spent = format!("{grabs} grabs and {credits} credits in 30 days");
    format!("{}  {prefix}…{}  {used}  {spent}  {}{scopes}{expiry}{revoked}", key.id, key.last4, key.name)
}
