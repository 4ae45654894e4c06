//! `grabd admin domain …`.

use anyhow::ensure;
use clap::Subcommand;
use grabd_domain::domains::{Domain, DomainRule};
use grabd_engine::clock::Clock;
use grabd_store::Store;
use grabd_store::operator::MAX_DOMAIN_RULES;
use serde_json::json;

use super::output::CommandOutput;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Do not capture pages of a domain and its subdomains.
    Deny {
        /// A domain such as example.com.
        domain: Domain,
    },
    /// Capture pages of a domain and its subdomains. Once any domain is allowed, others are not captured.
    Allow {
        /// A domain such as example.com.
        domain: Domain,
    },
    /// Remove the rule of a domain.
    Remove {
        /// The domain of the rule.
        domain: Domain,
    },
    /// List the rules of operators. Those of the configuration are in its section `abuse`.
    List,
}

impl Command {
    /// Whether it changes nothing.
    pub(super) const fn only_reads(&self) -> bool {
        matches!(self, Self::List)
    }
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<CommandOutput> {
    match command {
        Command::Deny { domain } => set(store, domain, DomainRule::Deny).await,
        Command::Allow { domain } => set(store, domain, DomainRule::Allow).await,
        Command::Remove { domain } => {
            let removed = store.operator().remove_domain_rule(domain.clone()).await?;
            ensure!(removed, "there is no rule for {domain}; `grabd admin domain list` shows them");
            let json = json!({ "domain": domain.as_str(), "rule": null });
            Ok(CommandOutput::ok(format!("The rule for {domain} is removed."), json))
        }
        Command::List => {
            let rules = store.operator().list_domain_rules().await?;
            let line = |rule: &grabd_store::operator::StoredDomainRule| {
                format!("{}  {}  {}", rule.rule.as_str(), rule.created_at, rule.domain)
            };
            let rows: Vec<_> = rules
                .iter()
                .map(|rule| {
                    json!({
                        "domain": rule.domain.as_str(), "rule": rule.rule.as_str(),
                        "created_at": rule.created_at.to_string(),
                    })
                })
                .collect();
            let lines: Vec<String> = rules.iter().map(line).collect();
            Ok(CommandOutput::ok(lines.join("\n"), json!({ "data": rows })))
        }
    }
}

async fn set(store: &Store, domain: Domain, rule: DomainRule) -> anyhow::Result<CommandOutput> {
    let set = store.operator().set_domain_rule(domain.clone(), rule, Clock::system().now()).await?;
    ensure!(set, "there are {MAX_DOMAIN_RULES} rules already; remove some, or use the configuration's section `abuse`");
    let text = match rule {
        DomainRule::Deny => format!("Pages of {domain} and its subdomains are not captured."),
        DomainRule::Allow => format!("Pages of {domain} and its subdomains are captured, and others only if allowed."),
    };
    Ok(CommandOutput::ok(text, json!({ "domain": domain.as_str(), "rule": rule.as_str() })))
}
