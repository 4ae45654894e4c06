//! Sign-ins of operators in the audit trail.

use grabd_domain::accounts::Email;
use grabd_domain::ids::UserId;

use crate::service::Core;
use crate::error::Error;

/// Records the sign-in of a person, if they are an operator.
pub(super) async fn record_operator(core: &Core, user: UserId, email: &Email) -> Result<(), Error> {
    let person = core.store.accounts().find_person_by_id(user).await?;
    match person {
        Some(person) if person.operator => {
            Ok(core.store_as(user).audit().record_operator_sign_in(email.as_str()).await?)
        }
        Some(_) | None => Ok(()),
    }
}
