//! What follows from a device code: the hash of its authorization code, and the page for its user.

use crate::digest;
use crate::service::Core;

/// The grant type of the token request.
pub(super) const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The path of the page for the code, below the issuer.
pub const DEVICE_PATH: &str = "/device";

/// Shown to a user who answers too late.
pub(super) const NOT_WAITING: &str = "The program does not wait any more, or its request was already answered.";

/// The hash of the authorization code of a device code with this hash. Nobody is told the code.
pub(super) fn code_hash(device: &[u8; 32]) -> [u8; 32] {
    let digits: String = device.iter().map(|byte| format!("{byte:02x}")).collect();
    digest::of(&digest::derive("device code", &digits))
}

/// The URL of the page on which users type codes.
pub(super) fn page(core: &Core) -> String {
    format!("{}{DEVICE_PATH}", core.oauth.settings.issuer)
}

/// The URL of the page after the user's answer.
pub(super) fn answered_page(core: &Core, is_allowed: bool) -> String {
    let answer = if is_allowed { "allowed" } else { "denied" };
    format!("{}?answer={answer}", page(core))
}
