//! Rules for the domains of captured pages.

use std::time::Duration;

use grabd_domain::domains::{Domain, DomainRule};
use grabd_store::operator::StoredDomainRule;

use super::Operator;
use crate::error::Error;
use crate::queue::sweep;
use crate::service::Core;

/// How often each process reads the stored rules.
pub const DOMAIN_RULES_INTERVAL: Duration = sweep::INTERVAL;

/// All rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainRules {
    /// Those of the configuration.
    pub configured: Vec<(Domain, DomainRule)>,
    /// Those of operators, by domain.
    pub stored: Vec<StoredDomainRule>,
}

/// The result of adding a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetDomainRuleOutcome {
    /// It is stored. An operator's other rule for the domain is replaced.
    Set,
    /// The same rule was stored before. Nothing changed.
    Unchanged,
    /// The maximum number of rules is stored already.
    TooMany,
}

/// All rules.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "operator.list_domain_rules", skip_all)]
pub async fn list_domain_rules(core: &Core, _: &Operator) -> Result<DomainRules, Error> {
    let stored = core.store.operator().list_domain_rules().await?;
    Ok(DomainRules { configured: core.settings.operations.domains.clone(), stored })
}

/// Adds the rule of a domain, or replaces it. In effect at once, in this process.
///
/// # Errors
/// When the database cannot be read or written.
#[tracing::instrument(name = "operator.set_domain_rule", skip_all)]
pub async fn set_domain_rule(
    core: &Core,
    operator: &Operator,
    domain: Domain,
    rule: DomainRule,
) -> Result<SetDomainRuleOutcome, Error> {
    let stored = core.store.operator().list_domain_rules().await?;
    if stored.iter().any(|stored| stored.domain == domain && stored.rule == rule) {
        return Ok(SetDomainRuleOutcome::Unchanged);
    }
    let Operator(user) = operator;
    let set = core.store_as(user.id).operator().set_domain_rule(domain.clone(), rule, core.clock.now()).await;
    if !set? {
        return Ok(SetDomainRuleOutcome::TooMany);
    }
    core.grabs.domains.refresh(&core.store).await?;
    tracing::warn!(operator.id = %user.id, %domain, rule = rule.as_str(), "an operator set a rule for a domain");
    Ok(SetDomainRuleOutcome::Set)
}

/// Removes the stored rule of a domain. In effect at once, in this process. `false` when it has none.
///
/// # Errors
/// When the database cannot be written.
#[tracing::instrument(name = "operator.remove_domain_rule", skip_all)]
pub async fn remove_domain_rule(core: &Core, operator: &Operator, domain: Domain) -> Result<bool, Error> {
    let Operator(user) = operator;
    let removed = core.store_as(user.id).operator().remove_domain_rule(domain.clone()).await?;
    if removed {
        core.grabs.domains.refresh(&core.store).await?;
        tracing::warn!(operator.id = %user.id, %domain, "an operator removed the rule for a domain");
    }
    Ok(removed)
}
