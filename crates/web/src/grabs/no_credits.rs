//! What is shown when a live capture cannot be paid.

use grabd_engine::billing;

use crate::state::Web;
use crate::team::TeamContext;

/// Where the team can get credits.
pub(super) struct NoCredits {
    /// The page where credits are bought. Empty if they cannot be bought here.
    pub(super) buy: String,
    /// Whom to ask for credits. Empty if the operator has configured nobody.
    pub(super) support: String,
}

impl NoCredits {
    pub(super) fn of(web: &Web, at: &TeamContext) -> Self {
        let buy = if billing::can_buy(&web.core) { format!("{}#buy", at.path("billing")) } else { String::new() };
        let support = web.core.service_links().support.as_ref().map(|link| link.href().to_owned()).unwrap_or_default();
        Self { buy, support }
    }
}
