//! Rules for the domains of captured pages, made by operators.

use grabd_domain::Timestamp;
use grabd_domain::domains::{Domain, DomainRule};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{EntityTrait, PaginatorTrait};

use crate::areas::Operators;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::domain_rule;
use crate::{Result, codes};

/// Maximum number of stored rules. The service keeps them in memory and reads all of them after a change.
pub const MAX_DOMAIN_RULES: u64 = 1000;

struct SetRule {
    domain: Domain,
    rule: DomainRule,
    now: Timestamp,
}

struct RemoveRule(Domain);

impl Operators<'_> {
    /// Adds the rule of a domain, or replaces it. `false` when there are [`MAX_DOMAIN_RULES`] already.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn set_domain_rule(self, domain: Domain, rule: DomainRule, now: Timestamp) -> Result<bool> {
        let action = match rule {
            DomainRule::Deny => "domain.deny",
            DomainRule::Allow => "domain.allow",
        };
        let event = AuditEvent::new(action, &domain, None);
        self.store.write_audited(SetRule { domain, rule, now }, event, |set| *set).await
    }

    /// Removes the rule of a domain. `false` when it has none.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove_domain_rule(self, domain: Domain) -> Result<bool> {
        let event = AuditEvent::new("domain.remove", &domain, None);
        self.store.write_audited(RemoveRule(domain), event, |removed| *removed).await
    }
}

impl Transaction for SetRule {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Self { domain, rule, now } = self;
        let exists = domain_rule::Entity::find_by_id(domain.as_str()).one(tx).await?.is_some();
        if !exists && domain_rule::Entity::find().count(tx).await? >= MAX_DOMAIN_RULES {
            return Ok(false);
        }
        let row = domain_rule::ActiveModel {
            domain: Set(domain.as_str().to_owned()),
            kind: Set(codes::domain_rule(*rule)),
            created_at: Set(now.as_ms()),
        };
        let updated = [domain_rule::Column::Kind, domain_rule::Column::CreatedAt];
        let on_conflict = OnConflict::column(domain_rule::Column::Domain).update_columns(updated).to_owned();
        domain_rule::Entity::insert(row).on_conflict(on_conflict).exec_without_returning(tx).await?;
        Ok(true)
    }
}

impl Transaction for RemoveRule {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let removed = domain_rule::Entity::delete_by_id(self.0.as_str()).exec(tx).await?;
        Ok(removed.rows_affected > 0)
    }
}
