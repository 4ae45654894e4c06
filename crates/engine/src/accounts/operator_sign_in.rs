//! Sign-ins of operators in the audit trail.

use grabd_domain::Fault;
use grabd_domain::accounts::Email;
use grabd_domain::ids::UserId;

use crate::core::Core;
use crate::faults::internal_error;

/// Records the sign-in of a person, if they are an operator.
pub(super) async fn record_operator(core: &Core, user: UserId, email: &Email) -> Result<(), Fault> {
    let step = "accounts.record_operator";
    let person = core.store.accounts().find_person_by_id(user).await.map_err(internal_error(step))?;
    match person {
        Some(person) if person.operator => {
            core.store_as(user).audit().record_operator_sign_in(email.as_str()).await.map_err(internal_error(step))
        }
        Some(_) | None => Ok(()),
    }
}
