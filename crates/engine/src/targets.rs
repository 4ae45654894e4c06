//! Which URLs this service requests for its users: pages to capture, and webhook endpoints.
//!
//! These checks need no connection, and run before anything is stored. The address guard checks each address again when
//! it connects.

use grabd_domain::Fault;
use grabd_domain::faults::Field;
use grabd_domain::target::{TargetHost, TargetUrl};

use crate::service::Core;

/// Checks the URL of a page, without a lookup: addresses must be public, and the operator's rules allow the domain.
///
/// # Errors
/// [`Fault::SsrfDetected`] and [`Fault::BadRequest`].
pub(crate) fn check_page_url(core: &Core, url: &TargetUrl) -> Result<(), Fault> {
    core.guard.check_public(url)?;
    core.grabs.domains.check(url)
}

/// Looks the host up, and refuses private addresses. When the lookup fails or times out, the URL is accepted.
///
/// # Errors
/// [`Fault::SsrfDetected`].
pub(crate) async fn check_host(core: &Core, url: &TargetUrl) -> Result<(), Fault> {
    let host = url.host();
    if matches!(host, TargetHost::Address(_)) {
        // Checked with the URL.
        return Ok(());
    }
    if !is_refused(core, &host).await {
        return Ok(());
    }
    let allowed = "a URL whose host has public addresses only";
    Err(Fault::SsrfDetected(Field::new("url", &format!("\"{host}\""), allowed)))
}

/// Looks a host up. Whether the guard refuses one of its addresses; if the lookup fails or times out, it does not.
pub(crate) async fn is_refused(core: &Core, host: &TargetHost) -> bool {
    match core.guard.resolve(host).await {
        Err(refusal) if refusal.is_refused() => {
            tracing::info!(host = %host, reason = refusal.reason(), "a URL was refused: its host is not public");
            true
        }
        Ok(_) | Err(_) => false,
    }
}
