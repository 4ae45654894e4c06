//! Reads of the rules for domains.

use grabd_domain::Timestamp;
use grabd_domain::domains::{Domain, DomainRule};
use sea_orm::{EntityTrait, QueryOrder, QuerySelect};

use crate::areas::Operators;
use crate::entities::domain_rule;
use crate::operator::MAX_DOMAIN_RULES;
use crate::{Error, Result, codes};

/// A stored rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDomainRule {
    /// The domain.
    pub domain: Domain,
    /// What it says.
    pub rule: DomainRule,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Operators<'_> {
    /// All stored rules, by domain.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_domain_rules(self) -> Result<Vec<StoredDomainRule>> {
        let by_domain = domain_rule::Entity::find().order_by_asc(domain_rule::Column::Domain).limit(MAX_DOMAIN_RULES);
        let read = |row: domain_rule::Model| {
            let domain = Domain::parse(&row.domain).map_err(|_| Error::Inconsistent("rule for an invalid domain"))?;
            let (rule, created_at) = (codes::read_domain_rule(row.kind)?, Timestamp::from_ms(row.created_at));
            Ok(StoredDomainRule { domain, rule, created_at })
        };
        by_domain.all(self.store.database.reader()).await?.into_iter().map(read).collect()
    }
}
