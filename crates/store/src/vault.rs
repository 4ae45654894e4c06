//! Replaces encrypted secrets by the same ones, encrypted with another key.

use grabd_domain::ids::{EndpointId, GrabId, KeyId, MonitorId, ProxyId, SiteId, UserId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::Vault;
use crate::database::{Transaction, Tx};
use crate::entities::{api_key, evidence_key, job_secrets, monitor, proxy, second_factor, site, webhook_endpoint};

/// The encrypted secrets of a webhook endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedEndpoint {
    /// The endpoint.
    pub id: EndpointId,
    /// Its secret.
    pub secret: Vec<u8>,
    /// The one before the last rotation of its secret.
    pub previous: Option<Vec<u8>>,
}

struct ResealEndpoint {
    old: SealedEndpoint,
    new: SealedEndpoint,
}

struct ResealJob {
    grab: GrabId,
    old: Vec<u8>,
    new: Vec<u8>,
}

struct ResealEvidenceKey {
    id: String,
    old: Vec<u8>,
    new: Vec<u8>,
}

struct ResealLinkSecret {
    key: KeyId,
    old: Vec<u8>,
    new: Vec<u8>,
}

struct ResealMonitor {
    monitor: MonitorId,
    old: Vec<u8>,
    new: Vec<u8>,
}

struct ResealProxy {
    proxy: ProxyId,
    old: Vec<u8>,
    new: Vec<u8>,
}

struct ResealSite {
    site: SiteId,
    old: Vec<u8>,
    new: Vec<u8>,
}

struct ResealSecondFactor {
    user: UserId,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Vault<'_> {
    /// Up to `limit` endpoints of all teams after an id, ordered by id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_sealed_endpoints(self, after: Option<EndpointId>, limit: u32) -> Result<Vec<SealedEndpoint>> {
        let mut query = webhook_endpoint::Entity::find();
        if let Some(after) = after {
            query = query.filter(webhook_endpoint::Column::Id.gt(after.0));
        }
        let rows = query.order_by_asc(webhook_endpoint::Column::Id).limit(u64::from(limit));
        let rows = rows.all(self.store.database.reader()).await?;
        let read = |row: webhook_endpoint::Model| SealedEndpoint {
            id: EndpointId(row.id),
            secret: row.secret,
            previous: row.previous_secret,
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// Up to `limit` open grabs of all teams with encrypted secrets after an id, ordered by id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_sealed_jobs(self, after: Option<GrabId>, limit: u32) -> Result<Vec<(GrabId, Vec<u8>)>> {
        let mut query = job_secrets::Entity::find()
            .select_only()
            .columns([job_secrets::Column::GrabId, job_secrets::Column::Secrets])
            .filter(job_secrets::Column::Secrets.is_not_null());
        if let Some(after) = after {
            query = query.filter(job_secrets::Column::GrabId.gt(after.0));
        }
        let rows: Vec<(Uuid, Vec<u8>)> = query
            .order_by_asc(job_secrets::Column::GrabId)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(rows.into_iter().map(|(grab, sealed)| (GrabId(grab), sealed)).collect())
    }

    /// Up to `limit` API keys of all teams with an encrypted link secret after an id, ordered by id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_sealed_link_secrets(self, after: Option<KeyId>, limit: u32) -> Result<Vec<(KeyId, Vec<u8>)>> {
        let mut query = api_key::Entity::find()
            .select_only()
            .columns([api_key::Column::Id, api_key::Column::LinkSecret])
            .filter(api_key::Column::LinkSecret.is_not_null());
        if let Some(after) = after {
            query = query.filter(api_key::Column::Id.gt(after.0));
        }
        let rows: Vec<(Uuid, Vec<u8>)> = query
            .order_by_asc(api_key::Column::Id)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(rows.into_iter().map(|(key, sealed)| (KeyId(key), sealed)).collect())
    }

    /// Up to `limit` monitors of all teams with encrypted secrets after an id, ordered by id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_sealed_monitors(self, after: Option<MonitorId>, limit: u32) -> Result<Vec<(MonitorId, Vec<u8>)>> {
        let mut query = monitor::Entity::find()
            .select_only()
            .columns([monitor::Column::Id, monitor::Column::Secrets])
            .filter(monitor::Column::Secrets.is_not_null());
        if let Some(after) = after {
            query = query.filter(monitor::Column::Id.gt(after.0));
        }
        let rows: Vec<(Uuid, Vec<u8>)> = query
            .order_by_asc(monitor::Column::Id)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(rows.into_iter().map(|(monitor, sealed)| (MonitorId(monitor), sealed)).collect())
    }

    /// Replaces the secrets of a monitor. `false` when they are not `old` any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reseal_monitor(self, monitor: MonitorId, old: Vec<u8>, new: Vec<u8>) -> Result<bool> {
        self.store.database.write(ResealMonitor { monitor, old, new }).await
    }

    /// The encrypted private key that signs evidence, with its id. Those of retired keys are deleted.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_sealed_evidence_key(self) -> Result<Option<(String, Vec<u8>)>> {
        let in_use = evidence_key::Entity::find().filter(evidence_key::Column::PrivateKey.is_not_null());
        let row = in_use.one(self.store.database.reader()).await?;
        Ok(row.and_then(|row| Some((row.id, row.private_key?))))
    }

    /// Replaces the private key that signs evidence. `false` when it is not `old` any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reseal_evidence_key(self, id: String, old: Vec<u8>, new: Vec<u8>) -> Result<bool> {
        self.store.database.write(ResealEvidenceKey { id, old, new }).await
    }

    /// Up to `limit` proxies of all teams with an encrypted login after an id, ordered by id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_sealed_proxies(self, after: Option<ProxyId>, limit: u32) -> Result<Vec<(ProxyId, Vec<u8>)>> {
        let mut query = proxy::Entity::find()
            .select_only()
            .columns([proxy::Column::Id, proxy::Column::Login])
            .filter(proxy::Column::Login.is_not_null());
        if let Some(after) = after {
            query = query.filter(proxy::Column::Id.gt(after.0));
        }
        let rows: Vec<(Uuid, Vec<u8>)> = query
            .order_by_asc(proxy::Column::Id)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(rows.into_iter().map(|(proxy, sealed)| (ProxyId(proxy), sealed)).collect())
    }

    /// Replaces the login of a proxy. `false` when it is not `old` any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reseal_proxy(self, proxy: ProxyId, old: Vec<u8>, new: Vec<u8>) -> Result<bool> {
        self.store.database.write(ResealProxy { proxy, old, new }).await
    }

    /// Up to `limit` site jobs of all teams with encrypted secrets after an id, ordered by id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_sealed_sites(self, after: Option<SiteId>, limit: u32) -> Result<Vec<(SiteId, Vec<u8>)>> {
        let mut query = site::Entity::find()
            .select_only()
            .columns([site::Column::Id, site::Column::Secrets])
            .filter(site::Column::Secrets.is_not_null());
        if let Some(after) = after {
            query = query.filter(site::Column::Id.gt(after.0));
        }
        let rows: Vec<(Uuid, Vec<u8>)> = query
            .order_by_asc(site::Column::Id)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(rows.into_iter().map(|(site, sealed)| (SiteId(site), sealed)).collect())
    }

    /// Replaces the secrets of a site job. `false` when they are not `old` any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reseal_site(self, site: SiteId, old: Vec<u8>, new: Vec<u8>) -> Result<bool> {
        self.store.database.write(ResealSite { site, old, new }).await
    }

    /// Up to `limit` secrets of authenticator apps after a user's id, ordered by id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_sealed_second_factors(self, after: Option<UserId>, limit: u32) -> Result<Vec<(UserId, Vec<u8>)>> {
        // Users with only passkeys have no secret.
        let mut query = second_factor::Entity::find().filter(second_factor::Column::Secret.ne(Vec::<u8>::new()));
        if let Some(after) = after {
            query = query.filter(second_factor::Column::UserId.gt(after.0));
        }
        let rows = query.order_by_asc(second_factor::Column::UserId).limit(u64::from(limit));
        let rows = rows.all(self.store.database.reader()).await?;
        Ok(rows.into_iter().map(|row| (UserId(row.user_id), row.secret)).collect())
    }

    /// Replaces the secret of a user's authenticator app. `false` when it is not `old` any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reseal_second_factor(self, user: UserId, old: Vec<u8>, new: Vec<u8>) -> Result<bool> {
        self.store.database.write(ResealSecondFactor { user, old, new }).await
    }

    /// Replaces the link secret of an API key. `false` when it is not `old` any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reseal_link_secret(self, key: KeyId, old: Vec<u8>, new: Vec<u8>) -> Result<bool> {
        self.store.database.write(ResealLinkSecret { key, old, new }).await
    }

    /// Replaces the secrets of an endpoint. `false` when they are not `old` any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reseal_endpoint(self, old: SealedEndpoint, new: SealedEndpoint) -> Result<bool> {
        self.store.database.write(ResealEndpoint { old, new }).await
    }

    /// Replaces the secrets of an open grab. `false` when they are not `old` any more.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reseal_job(self, grab: GrabId, old: Vec<u8>, new: Vec<u8>) -> Result<bool> {
        self.store.database.write(ResealJob { grab, old, new }).await
    }
}

impl Transaction for ResealEndpoint {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let change = webhook_endpoint::Entity::update_many()
            .col_expr(webhook_endpoint::Column::Secret, Expr::value(self.new.secret.clone()))
            .col_expr(webhook_endpoint::Column::PreviousSecret, Expr::value(self.new.previous.clone()))
            .filter(webhook_endpoint::Column::Id.eq(self.old.id.0))
            .filter(webhook_endpoint::Column::Secret.eq(self.old.secret.clone()));
        let change = match &self.old.previous {
            Some(previous) => change.filter(webhook_endpoint::Column::PreviousSecret.eq(previous.clone())),
            None => change.filter(webhook_endpoint::Column::PreviousSecret.is_null()),
        };
        Ok(change.exec(tx).await?.rows_affected > 0)
    }
}

impl Transaction for ResealJob {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let changed = job_secrets::Entity::update_many()
            .col_expr(job_secrets::Column::Secrets, Expr::value(self.new.clone()))
            .filter(job_secrets::Column::GrabId.eq(self.grab.0))
            .filter(job_secrets::Column::Secrets.eq(self.old.clone()))
            .exec(tx)
            .await?;
        Ok(changed.rows_affected > 0)
    }
}

impl Transaction for ResealLinkSecret {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let changed = api_key::Entity::update_many()
            .col_expr(api_key::Column::LinkSecret, Expr::value(self.new.clone()))
            .filter(api_key::Column::Id.eq(self.key.0))
            .filter(api_key::Column::LinkSecret.eq(self.old.clone()))
            .exec(tx)
            .await?;
        Ok(changed.rows_affected > 0)
    }
}

impl Transaction for ResealEvidenceKey {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let changed = evidence_key::Entity::update_many()
            .col_expr(evidence_key::Column::PrivateKey, Expr::value(self.new.clone()))
            .filter(evidence_key::Column::Id.eq(self.id.clone()))
            .filter(evidence_key::Column::PrivateKey.eq(self.old.clone()))
            .exec(tx)
            .await?;
        Ok(changed.rows_affected > 0)
    }
}

impl Transaction for ResealMonitor {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let changed = monitor::Entity::update_many()
            .col_expr(monitor::Column::Secrets, Expr::value(self.new.clone()))
            .filter(monitor::Column::Id.eq(self.monitor.0))
            .filter(monitor::Column::Secrets.eq(self.old.clone()))
            .exec(tx)
            .await?;
        Ok(changed.rows_affected > 0)
    }
}

impl Transaction for ResealProxy {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let changed = proxy::Entity::update_many()
            .col_expr(proxy::Column::Login, Expr::value(self.new.clone()))
            .filter(proxy::Column::Id.eq(self.proxy.0))
            .filter(proxy::Column::Login.eq(self.old.clone()))
            .exec(tx)
            .await?;
        Ok(changed.rows_affected > 0)
    }
}

impl Transaction for ResealSite {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let changed = site::Entity::update_many()
            .col_expr(site::Column::Secrets, Expr::value(self.new.clone()))
            .filter(site::Column::Id.eq(self.site.0))
            .filter(site::Column::Secrets.eq(self.old.clone()))
            .exec(tx)
            .await?;
        Ok(changed.rows_affected > 0)
    }
}

impl Transaction for ResealSecondFactor {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let changed = second_factor::Entity::update_many()
            .col_expr(second_factor::Column::Secret, Expr::value(self.new.clone()))
            .filter(second_factor::Column::UserId.eq(self.user.0))
            .filter(second_factor::Column::Secret.eq(self.old.clone()))
            .exec(tx)
            .await?;
        Ok(changed.rows_affected > 0)
    }
}
