//! JSON representation of proxies: see `grabd_api`.

use grabd_api::Proxy;
use grabd_proto::v1;

use super::super::wire::{borrowed, time};

/// Converts a proxy. `None` if a required field is missing.
pub(super) fn proxy(proxy: &v1::Proxy) -> Option<Proxy<'_>> {
    let v1::Proxy { id, name, url, has_login, created_at, updated_at, last_used_at, last_error, last_error_at } = proxy;
    Some(Proxy {
        id: id.into(),
        name: name.into(),
        url: url.into(),
        has_login: *has_login,
        created_at: time(created_at.as_ref()?)?,
        updated_at: time(updated_at.as_ref()?)?,
        last_used_at: last_used_at.as_ref().and_then(time),
        last_error: borrowed(last_error),
        last_error_at: last_error_at.as_ref().and_then(time),
    })
}
