//! The rules for the domains of captured pages: those of the configuration, and those that operators store.
//!
//! They are kept in memory, because every create checks them. The sweep reads the stored ones again, so a change by a
//! command or by another process applies within a second.

use std::sync::Arc;

use grabd_domain::Fault;
use grabd_domain::domains::{Domain, DomainRule, DomainRules};
use grabd_domain::faults::Field;
use grabd_domain::grabs::Failure;
use grabd_domain::target::TargetUrl;
use grabd_store::Store;
use parking_lot::RwLock;
use tokio::sync::Mutex;

/// The current rules.
pub(crate) struct DomainPolicy {
    configured: Vec<(Domain, DomainRule)>,
    current: RwLock<Arc<DomainRules>>,
    /// Held from the read to the update, or an earlier read could replace a later one.
    refreshing: Mutex<()>,
}

impl DomainPolicy {
    /// The configured rules. The stored ones are added by [`DomainPolicy::refresh`].
    pub(crate) fn new(configured: Vec<(Domain, DomainRule)>) -> Self {
        let rules = configured.iter().cloned().collect();
        Self { configured, current: RwLock::new(Arc::new(rules)), refreshing: Mutex::default() }
    }

    /// Reads the stored rules. All rules that were stored before the call are in effect after it.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), grabd_store::Error> {
        let _refreshing = self.refreshing.lock().await;
        let stored = store.operator().list_domain_rules().await?.into_iter().map(|stored| (stored.domain, stored.rule));
        let rules: DomainRules = self.configured.iter().cloned().chain(stored).collect();
        // Otherwise the same rules would be sent to all renderers again.
        if *self.current() != rules {
            *self.current.write() = Arc::new(rules);
        }
        Ok(())
    }

    /// Checks the URL of a request.
    ///
    /// # Errors
    /// [`Fault::BadRequest`]: nothing is wrong with the site, and another URL would be captured.
    pub(crate) fn check(&self, url: &TargetUrl) -> Result<(), Fault> {
        match self.current().allows(&url.host()) {
            true => Ok(()),
            false => {
                let seen = format!("\"{}\"", url.as_str());
                Err(Fault::BadRequest(Field::new("url", &seen, "on a domain that this service captures")))
            }
        }
    }

    /// Checks the URL of the document that was captured, to which redirects may have led.
    ///
    /// # Errors
    /// The failure of the grab.
    pub(crate) fn check_document(&self, url: Option<&str>) -> Result<(), Failure> {
        let Some(url) = url.and_then(TargetUrl::restore) else { return Ok(()) };
        match self.current().allows(&url.host()) {
            true => Ok(()),
            false => Err(DomainRules::failure()),
        }
    }

    /// The rules that are in effect.
    pub(crate) fn current(&self) -> Arc<DomainRules> {
        Arc::clone(&self.current.read())
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::grabs::FailureReason;

    use super::*;

    #[tokio::test]
    async fn stored_rules_are_added_to_the_configured_ones() {
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        let domain = |name| Domain::parse(name).unwrap();
        let policy = DomainPolicy::new(vec![(domain("example.com"), DomainRule::Deny)]);
        let now = Timestamp::from_ms(1);
        assert!(store.operator().set_domain_rule(domain("example.org"), DomainRule::Deny, now).await.unwrap());
        let check = |text: &str| policy.check(&TargetUrl::parse(text).unwrap());
        assert_eq!(check("https://www.example.org/"), Ok(()));
        policy.refresh(&store).await.unwrap();
        for url in ["https://www.example.org/", "http://example.com:8080/x", "https://EXAMPLE.com./"] {
            assert!(matches!(check(url), Err(Fault::BadRequest(field)) if field.name == "url"), "{url}");
            let failure = policy.check_document(Some(url)).unwrap_err();
            assert_eq!(failure.reason, FailureReason::RenderBlocked);
        }
        assert!(policy.check_document(Some("https://example.net/")).is_ok() && policy.check_document(None).is_ok());
        assert!(store.operator().remove_domain_rule(domain("example.org")).await.unwrap());
        assert!(!store.operator().remove_domain_rule(domain("example.org")).await.unwrap());
        policy.refresh(&store).await.unwrap();
        assert_eq!(check("https://www.example.org/"), Ok(()));
        store.close().await;
    }
}
