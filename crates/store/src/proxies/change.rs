//! Changes and deletes proxies.

use grabd_domain::Timestamp;
use grabd_domain::proxies::{Proxy, ProxyUrl};
use sea_orm::ActiveValue::{self, NotSet, Set, Unchanged};
use sea_orm::{ActiveModelTrait, EntityTrait};

use super::proxy_ref::ProxyRef;
use crate::Result;
use crate::areas::Proxies;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::proxy;

/// A change of a proxy. `None` is not changed.
#[derive(Clone, Debug)]
pub struct ProxyUpdate {
    /// The proxy.
    pub target: ProxyRef,
    /// The URL that the change was checked against.
    pub current_url: ProxyUrl,
    /// The encrypted user name and password that the new ones were made from.
    pub current_login: Option<Vec<u8>>,
    /// Its new name.
    pub name: Option<String>,
    /// Where it is now.
    pub url: Option<ProxyUrl>,
    /// The new user name and password, encrypted. The inner `None`: there are none any more.
    pub login: Option<Option<Vec<u8>>>,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeProxyOutcome {
    /// The changed proxy.
    Changed(Box<Proxy>),
    /// The caller has no such proxy.
    NotFound,
    /// Nothing was changed: the URL or the login has been changed in the meantime.
    Outdated,
}

struct RemoveProxy {
    target: ProxyRef,
}

impl Proxies<'_> {
    /// Changes a proxy and returns it. A new URL or login clears the last failure, since the proxy may work now. Neither
    /// is saved if the URL or the login is not the current one any more, so that no login reaches a server that it was
    /// not given for, and no concurrent change is lost.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn change(self, update: ProxyUpdate) -> Result<ChangeProxyOutcome> {
        let action = if update.login.is_some() { "proxy.password" } else { "proxy.change" };
        let event = AuditEvent::new(action, &update.target.proxy, Some(update.target.team));
        let changed = |outcome: &ChangeProxyOutcome| matches!(outcome, ChangeProxyOutcome::Changed(_));
        self.store.write_audited(update, event, changed).await
    }

    /// Deletes a proxy. `false` when the caller has no such proxy.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove(self, target: ProxyRef) -> Result<bool> {
        let event = AuditEvent::new("proxy.delete", &target.proxy, Some(target.team));
        self.store.write_audited(RemoveProxy { target }, event, |removed: &bool| *removed).await
    }
}

impl Transaction for ProxyUpdate {
    type Outcome = ChangeProxyOutcome;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<ChangeProxyOutcome> {
        let Some(row) = self.target.lock(tx).await? else { return Ok(ChangeProxyOutcome::NotFound) };
        let changes_connection = self.login.is_some() || self.url.is_some();
        if changes_connection && (proxy::read_url(&row)? != self.current_url || row.login != self.current_login) {
            return Ok(ChangeProxyOutcome::Outdated);
        }
        let mut changed = proxy::ActiveModel {
            id: Unchanged(row.id),
            name: set(self.name.clone()),
            url: set(self.url.as_ref().map(ToString::to_string)),
            updated_at: Set(self.now.as_ms()),
            ..Default::default()
        };
        if let Some(login) = &self.login {
            changed.login = Set(login.clone());
        }
        if changes_connection {
            changed.last_error = Set(None);
            changed.last_error_at = Set(None);
        }
        let changed = proxy::read(&changed.update(tx).await?)?;
        Ok(ChangeProxyOutcome::Changed(Box::new(changed)))
    }
}

impl Transaction for RemoveProxy {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Some(row) = self.target.lock(tx).await? else { return Ok(false) };
        proxy::Entity::delete_by_id(row.id).exec(tx).await?;
        Ok(true)
    }
}

fn set(value: Option<String>) -> ActiveValue<String> {
    value.map_or(NotSet, Set)
}
