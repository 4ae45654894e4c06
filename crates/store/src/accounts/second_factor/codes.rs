//! Inserts recovery codes.

use grabd_domain::ids::UserId;
use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;

use crate::Result;
use crate::database::Tx;
use crate::entities::recovery_code;

/// Inserts the hashes of the recovery codes of a user with a second factor.
pub(in crate::accounts) async fn insert_codes(tx: &Tx, user: UserId, codes: &[[u8; 32]]) -> Result<()> {
    let row = |hash: &[u8; 32]| recovery_code::ActiveModel { user_id: Set(user.0), hash: Set(hash.to_vec()) };
    recovery_code::Entity::insert_many(codes.iter().map(row)).exec_without_returning(tx).await?;
    Ok(())
}
