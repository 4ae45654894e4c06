//! Sign-ins of operators in the audit trail.

use grabd_domain::accounts::Email;
use grabd_domain::ids::UserId;

use crate::error::Error;
use crate::service::Core;

/// Records the sign-in of a user, if they are an operator.
pub(super) async fn record_operator(core: &Core, user: UserId, email: &Email) -> Result<(), Error> {
    let found = core.store.accounts().find_user_by_id(user).await?;
    match found {
        Some(found) if found.operator => {
            Ok(core.store_as(user).audit().record_operator_sign_in(email.as_str()).await?)
        }
        Some(_) | None => Ok(()),
    }
}
