//! `/account/passkeys`: the passkeys of a user, one file per page.

pub(crate) mod add;
pub(crate) mod list;
pub(crate) mod one;

/// The path of the page that confirms that a passkey is added.
pub(crate) const NEW: &str = "/account/passkeys/new";
/// The path of the form that sends the new passkey.
pub(crate) const ADD: &str = "/account/passkeys/add";
/// The path of the page of a passkey.
pub(crate) const ONE: &str = "/account/passkeys/{passkey}";
/// The path of the form that renames a passkey.
pub(crate) const NAME: &str = "/account/passkeys/{passkey}/name";
/// The path of the form that removes a passkey.
pub(crate) const REMOVE: &str = "/account/passkeys/{passkey}/remove";
