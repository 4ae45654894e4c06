//! Who an app is: what it registered here, or what its own document says.

use grabd_domain::Fault;
use grabd_domain::oauth::{ClientId, RedirectUri};

use super::documents::Unreadable;
use crate::core::{Core, inside};

/// An app that may ask.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: ClientId,
    pub(super) name: String,
    /// Of its document: all that is known for sure.
    pub(super) host: Option<String>,
    pub(super) redirect_uris: Vec<RedirectUri>,
}

/// Why an app may not ask.
#[derive(Debug)]
pub(super) enum Unknown {
    NotRegistered,
    Document(Unreadable),
    Inside(Fault),
}

pub(super) async fn find(core: &Core, id: ClientId) -> Result<Client, Unknown> {
    let (metadata, host) = match &id {
        ClientId::Registered(text) => {
            let found = core.store.find_client(text).await;
            let found = found.map_err(|error| Unknown::Inside(inside("oauth.find_client")(error)))?;
            (found.ok_or(Unknown::NotRegistered)?.metadata, None)
        }
        ClientId::Document(url) => (core.documents.get(core, url).await.map_err(Unknown::Document)?, Some(url.host())),
    };
    Ok(Client { id, name: metadata.name, host, redirect_uris: metadata.redirect_uris })
}
