//! The files beside an image. Their rows are added with the image, and deleted by triggers when the image is.

use grabd_domain::grabs::GrabFile;
use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;

use crate::Result;
use crate::codes::size;
use crate::database::Tx;
use crate::entities::{grab, grab_file};

/// Adds the files of a grab whose image is shown.
pub(super) async fn add_files(tx: &Tx, grab: &grab::Model, files: &[GrabFile]) -> Result<()> {
    if files.is_empty() || grab.image_key.is_none() {
        return Ok(());
    }
    let rows = files.iter().map(|file| grab_file::ActiveModel {
        key: Set(file.key.as_str().to_owned()),
        grab_id: Set(grab.id),
        team_id: Set(grab.team_id),
        env: Set(grab.env),
        kind: Set(grab_file::kind(file.kind)),
        bytes: Set(size(file.bytes)),
    });
    grab_file::Entity::insert_many(rows).exec_without_returning(tx).await?;
    Ok(())
}
