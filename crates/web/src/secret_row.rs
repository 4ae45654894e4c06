//! A secret in a list of those that people without access know, or that a leaving member knows.

use grabd_domain::ids::TeamId;
use grabd_engine::accounts::{RemainingSecret, TeamSecret};

use crate::environments::environment_name;
use crate::paths;
use crate::time_format::Moment;

/// A secret in a list.
pub(crate) struct SecretRow {
    /// Unique on the page.
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) environment: &'static str,
    /// Who has seen it. Empty if that is not known.
    pub(crate) known_to: String,
    /// `None`: it was not recorded who saw it.
    pub(crate) seen: Option<Moment>,
    /// The page that replaces it, and the label of its link.
    pub(crate) path: String,
    pub(crate) action: &'static str,
}

impl SecretRow {
    pub(crate) fn of(team: TeamId, secret: RemainingSecret) -> Self {
        let RemainingSecret { secret, environment, name, known_to, seen_at } = secret;
        let page = |page: String| paths::team_page(team, &page);
        let (kind, id, path, action) = match secret {
            TeamSecret::Key(key) => ("API key", format!("key-{key}"), page(format!("keys/{key}/revoke")), "Revoke"),
            TeamSecret::Link(key) => {
                ("Link secret", format!("link-{key}"), page(format!("keys/{key}/link/replace")), "Replace")
            }
            TeamSecret::Webhook(webhook) => {
                ("Webhook secret", format!("webhook-{webhook}"), page(format!("webhooks/{webhook}/secret")), "Rotate")
            }
        };
        let known_to = known_to.map(|email| email.to_string()).unwrap_or_default();
        let (environment, seen) = (environment_name(environment), seen_at.map(Moment::from));
        Self { id: format!("{id}-{known_to}"), kind, name, environment, known_to, seen, path, action }
    }
}
