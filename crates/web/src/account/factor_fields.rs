//! The fields with which a signed-in user confirms a change of their second factor: the password, and a code or a passkey.

use grabd_domain::ids::UserId;
use grabd_engine::accounts;

use crate::fields::{any_code_field, password_field, recovery_code_field};
use crate::form::{Field, FieldError};
use crate::page::{CspOptions, Layout};
use crate::problem::Problem;
use crate::state::Web;

/// The fields of the confirmation.
pub(super) struct FactorFields {
    pub(super) password: Field,
    /// `None` while the second factor is off.
    pub(super) code: Option<Field>,
    /// Whether a passkey can be used instead of the code.
    pub(super) has_passkeys: bool,
}

impl FactorFields {
    /// The fields for a user.
    ///
    /// # Errors
    /// When the lookup fails.
    pub(super) async fn of(web: &Web, user: UserId, errors: &[FieldError]) -> Result<Self, Problem> {
        let factor = accounts::find_second_factor(&web.core, user).await?;
        let code = factor.map(|factor| match factor.has_app {
            true => any_code_field(errors),
            false => recovery_code_field(errors),
        });
        let has_passkeys =
            accounts::has_passkeys(&web.core) && !accounts::list_passkeys(&web.core, user).await?.is_empty();
        Ok(Self { password: password_field("current-password", "", errors), code, has_passkeys })
    }

    /// Adds the script for passkeys to a layout, if one can be used.
    pub(super) fn layout(&self, web: &Web, layout: Layout) -> Layout {
        let script = if self.has_passkeys { Some(web.assets.passkey.path.clone()) } else { layout.script };
        Layout { script, ..layout }
    }

    /// What the script needs.
    pub(super) fn csp(&self) -> CspOptions<'static> {
        CspOptions { connects: self.has_passkeys, ..CspOptions::default() }
    }
}
