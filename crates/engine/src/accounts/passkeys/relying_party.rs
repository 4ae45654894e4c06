//! The relying party: the host for which passkeys are valid, and the origin of the pages that use them.

use grabd_domain::accounts::CHALLENGE_LIFE;
use url::{Host, Url};
use webauthn_rs_core::WebauthnCore;

use crate::service::Core;

/// Whether users can use passkeys: browsers allow them only with TLS or on `localhost`, and never for an IP address.
pub fn has_passkeys(core: &Core) -> bool {
    host(&core.oauth.settings.issuer).is_some()
}

/// The relying party of the web app; `None` if its URL does not allow passkeys.
pub(super) fn relying_party(core: &Core) -> Option<WebauthnCore> {
    let (origin, host) = host(&core.oauth.settings.issuer)?;
    let name = format!("grabd {host}");
    // The host itself is the id, so that neither parent domains nor subdomains can use the passkeys.
    Some(WebauthnCore::new_unsafe_experts_only(&name, &host, vec![origin], CHALLENGE_LIFE, Some(false), Some(false)))
}

fn host(origin: &str) -> Option<(Url, String)> {
    let url = Url::parse(origin).ok()?;
    let host = match url.host()? {
        Host::Domain(domain) => domain.to_owned(),
        Host::Ipv4(_) | Host::Ipv6(_) => return None,
    };
    let is_local = host == "localhost" || host.ends_with(".localhost");
    (url.scheme() == "https" || is_local).then_some((url, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passkeys_need_a_domain_and_a_secure_context() {
        for (origin, expected) in [
            ("https://shots.example.com", Some("shots.example.com")),
            ("https://shots.example.com:8443", Some("shots.example.com")),
            ("http://localhost:8080", Some("localhost")),
            ("http://grabd.localhost:8080", Some("grabd.localhost")),
            ("http://shots.example.com", None),
            ("http://notlocalhost", None),
            ("http://127.0.0.1:8080", None),
            ("https://192.0.2.1", None),
            ("https://[2001:db8::1]", None),
        ] {
            assert_eq!(host(origin).map(|(_, host)| host).as_deref(), expected, "{origin}");
        }
    }
}
