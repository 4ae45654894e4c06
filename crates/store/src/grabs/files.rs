//! The attachments. Their rows are added with the image, and deleted by triggers when the image is.

use grabd_domain::capture::AttachmentName;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::RenderMetadata;
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;

use crate::Result;
use crate::codes::{self, size};
use crate::database::Tx;
use crate::entities::grab_file;

/// Adds the files of a grab whose image is shown.
pub(super) async fn add_files(
    tx: &Tx,
    (grab, team, environment): (GrabId, TeamId, Environment),
    metadata: &RenderMetadata,
) -> Result<()> {
    let files = metadata.files.iter().map(|file| (AttachmentName::Also(file.kind), &file.key, file.bytes));
    let slices = metadata.numbered_slices();
    let slices = slices.map(|(number, slice)| (AttachmentName::Slice(number), &slice.key, slice.bytes));
    let viewports = metadata.numbered_viewports();
    let viewports = viewports.map(|(number, image)| (AttachmentName::Viewport(number), &image.key, image.bytes));
    let step_images = metadata.numbered_step_images();
    let step_images = step_images.map(|(number, taken)| (AttachmentName::Step(number), &taken.key, taken.bytes));
    let rows: Vec<_> = files
        .chain(slices)
        .chain(viewports)
        .chain(step_images)
        .map(|(name, key, bytes)| grab_file::ActiveModel {
            key: Set(key.as_str().to_owned()),
            grab_id: Set(grab.0),
            team_id: Set(team.0),
            env: Set(codes::environment(environment)),
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
