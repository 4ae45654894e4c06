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
    /// Its new name.
    pub name: Option<String>,
    /// Where it is now.
    pub url: Option<ProxyUrl>,
    /// The new user name and password, encrypted. The inner `None`: there are none any more.
    pub login: Option<Option<Vec<u8>>>,
    /// Current time.
    pub now: Timestamp,
}

struct RemoveProxy {
    target: ProxyRef,
}

impl Proxies<'_> {
    /// Changes a proxy and returns it. `None` when the caller has no such proxy. Its last failure is forgotten, since
    /// it may work now.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn change(self, update: ProxyUpdate) -> Result<Option<Proxy>> {
        let action = if update.login.is_some() { "proxy.password" } else { "proxy.change" };
        let event = AuditEvent::new(action, &update.target.proxy, Some(update.target.team));
        self.store.write_audited(update, event, Option::is_some).await
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
    type Outcome = Option<Proxy>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<Proxy>> {
        let Some(row) = self.target.lock(tx).await? else { return Ok(None) };
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
        if self.login.is_some() || self.url.is_some() {
            changed.last_error = Set(None);
            changed.last_error_at = Set(None);
        }
        proxy::read(&changed.update(tx).await?).map(Some)
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
