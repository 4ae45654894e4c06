//! Looking up a client: registered here, or described by its own metadata document.

use grabd_domain::oauth::{ClientId, RedirectUri};

use super::documents::{DocumentError, Fetcher};
use crate::error::{Error, internal_from};
use crate::service::Core;

/// A client that may request authorization.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: ClientId,
    pub(super) name: String,
    /// Host of its metadata document: the only verified fact about a client.
    pub(super) host: Option<String>,
    pub(super) redirect_uris: Vec<RedirectUri>,
}

/// Why a client could not be looked up.
#[derive(Debug)]
pub(super) enum ClientError {
    NotRegistered,
    Document(DocumentError),
    Internal(Error),
}

internal_from!(ClientError);

pub(super) async fn find(core: &Core, id: ClientId) -> Result<Client, ClientError> {
    let (metadata, host) = match &id {
        ClientId::Registered(text) => {
            let found = core.store.oauth().find_client(text).await;
            (found?.ok_or(ClientError::NotRegistered)?.metadata, None)
        }
        ClientId::Document(url) => {
            let fetcher = Fetcher { client: &core.outgoing, guard: &core.guard };
            let document = core.oauth.documents.get(fetcher, &core.clock, url).await;
            (document.map_err(ClientError::Document)?, Some(url.host()))
        }
    };
    Ok(Client { id, name: metadata.name, host, redirect_uris: metadata.redirect_uris })
}
