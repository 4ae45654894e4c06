//! The files beside an image. Their rows are added with the image, and deleted by triggers when the image is.

use grabd_domain::capture::BesideName;
use grabd_domain::grabs::RenderMetadata;
use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;

use crate::Result;
use crate::codes::size;
use crate::database::Tx;
use crate::entities::{grab, grab_file};

/// Adds the files of a grab whose image is shown.
pub(super) async fn add_files(tx: &Tx, grab: &grab::Model, metadata: &RenderMetadata) -> Result<()> {
    if grab.image_key.is_none() {
        return Ok(());
    }
    let files = metadata.files.iter().map(|file| (BesideName::Also(file.kind), &file.key, file.bytes));
    let slices = metadata.numbered_slices();
    let slices = slices.map(|(number, slice)| (BesideName::Slice(number), &slice.key, slice.bytes));
    let viewports = metadata.numbered_viewports();
    let viewports = viewports.map(|(number, image)| (BesideName::Viewport(number), &image.key, image.bytes));
    let rows: Vec<_> = files
        .chain(slices)
        .chain(viewports)
        .map(|(name, key, bytes)| grab_file::ActiveModel {
            key: Set(key.as_str().to_owned()),
            grab_id: Set(grab.id),
            team_id: Set(grab.team_id),
            env: Set(grab.env),
            kind: Set(grab_file::kind(name)),
            bytes: Set(size(bytes)),
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    grab_file::Entity::insert_many(rows).exec_without_returning(tx).await?;
    Ok(())
}
