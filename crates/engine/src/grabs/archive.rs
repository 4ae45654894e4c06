//! Several images as one zip archive.

use std::io;
use std::time::Duration;

use async_zip::tokio::write::ZipFileWriter;
use async_zip::{Compression, ZipDateTime, ZipDateTimeBuilder, ZipEntryBuilder};
use bytes::Bytes;
use futures::{AsyncWriteExt, Stream, StreamExt, stream};
use grabd_domain::Timestamp;
use grabd_domain::grabs::ImageKey;
use grabd_domain::ids::TeamId;
use grabd_images::Content;
use grabd_limiters::{Busy, Turn};
use tokio::io::DuplexStream;
use tokio::time::timeout;
use tokio_util::io::ReaderStream;

use super::image::{Image, ImageError};
use crate::billing::find_payer;
use crate::error::internal_from;
use crate::service::Core;

/// The most bytes of the images of one archive.
pub const MAX_ARCHIVE_BYTES: u64 = 1 << 30;
/// Archives that are made at the same time. Each holds a connection and reads one image at a time.
pub(super) const MAX_ARCHIVES: usize = 32;
/// Those of one payer, in all of its teams. A client may take minutes to receive one.
pub(super) const MAX_OF_ACCOUNT: usize = 1;
/// How long a client may take to receive an archive.
const TIME_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Bytes that are read ahead of the client.
const BUFFER: usize = 64 << 10;

/// An image that is put into an archive.
#[derive(Clone, Debug)]
pub struct ArchivedImage {
    /// The name of its file, which no other image of the archive has.
    pub name: String,
    /// Its key.
    pub key: ImageKey,
    /// The time of its file.
    pub created_at: Timestamp,
}

/// A file that is put into an archive.
pub(crate) struct ArchivedFile {
    /// The name of its file.
    pub(crate) name: String,
    /// Its parts, which are read while the archive is sent.
    pub(crate) chunks: stream::BoxStream<'static, io::Result<Bytes>>,
    /// The time of its file.
    pub(crate) created_at: Timestamp,
}

/// Why no archive or export is made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The payer receives one already.
    #[error("another one of the account is being received")]
    AccountBusy,
    /// All payers together receive as many as are made at the same time.
    #[error("too many are being received")]
    Busy,
    /// An internal error.
    #[error(transparent)]
    Internal(crate::Error),
}

internal_from!(ArchiveError);

impl From<Busy> for ArchiveError {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Key => Self::AccountBusy,
            Busy::All => Self::Busy,
        }
    }
}

/// Why an archive is incomplete.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Storage(#[from] grabd_images::Error),
    #[error(transparent)]
    Zip(#[from] async_zip::error::ZipError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the client took longer than {TIME_LIMIT:?}")]
    TimedOut,
    #[error("the service is stopping")]
    Stopping,
}

/// An archive of these images of a team, which are read one after the other while it is sent. They are stored without
/// compression, because they are compressed already. Images that were deleted in the meantime are left out.
///
/// The stream ends with an error if the archive is incomplete.
///
/// # Errors
/// See [`ArchiveError`].
#[tracing::instrument(name = "grabs.archive", skip_all)]
pub async fn archive(
    core: &Core,
    team: TeamId,
    images: Vec<ArchivedImage>,
) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>, ArchiveError> {
    archive_with(core, team, None, images).await
}

/// The same with another file before the images.
///
/// # Errors
/// See [`ArchiveError`].
pub(crate) async fn archive_with(
    core: &Core,
    team: TeamId,
    first: Option<ArchivedFile>,
    images: Vec<ArchivedImage>,
) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>, ArchiveError> {
    let payer = find_payer(core, team).await?;
    let turn = core.grabs.archives.try_take(&payer.id)?;
    let (reader, writer) = tokio::io::duplex(BUFFER);
    let task = core.clone();
    let written = core.spawn(async move {
        let written = tokio::select! {
            written = timeout(TIME_LIMIT, write(&task, first, images, writer, turn)) => {
                written.unwrap_or(Err(Error::TimedOut))
            }
            () = task.stopped() => Err(Error::Stopping),
        };
        // Most often the client has gone.
        written.inspect_err(|error| tracing::info!(%error, "an archive of images is incomplete"))
    });
    let end = stream::once(async move {
        match written.await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Err(io::Error::other(error))),
            Err(error) => Some(Err(io::Error::other(error))),
        }
    });
    Ok(ReaderStream::with_capacity(reader, BUFFER).chain(end.filter_map(std::future::ready)))
}

async fn write(
    core: &Core,
    first: Option<ArchivedFile>,
    images: Vec<ArchivedImage>,
    writer: DuplexStream,
    _turn: Turn,
) -> Result<(), Error> {
    let mut archive = ZipFileWriter::with_tokio(writer);
    if let Some(first) = first {
        add(&mut archive, first).await?;
    }
    for ArchivedImage { name, key, created_at } in images {
        let Some(chunks) = content(core, &key).await? else { continue };
        add(&mut archive, ArchivedFile { name, chunks, created_at }).await?;
    }
    archive.close().await?;
    Ok(())
}

/// Adds a file.
async fn add(archive: &mut ZipFileWriter<DuplexStream>, file: ArchivedFile) -> Result<(), Error> {
    let ArchivedFile { name, mut chunks, created_at } = file;
    let date = zip_date(created_at);
    let entry = ZipEntryBuilder::new(name.into(), Compression::Stored).last_modification_date(date);
    let mut file = archive.write_entry_stream(entry).await?;
    while let Some(chunk) = chunks.next().await {
        file.write_all(&chunk?).await?;
    }
    file.close().await?;
    Ok(())
}

/// The content of an image. `None` if it was deleted.
async fn content(core: &Core, key: &ImageKey) -> Result<Option<stream::BoxStream<'static, io::Result<Bytes>>>, Error> {
    let file = match core.image(key).await? {
        None => return Ok(None),
        Some(Image::Placeholder(bytes)) => return Ok(Some(stream::iter([Ok(bytes)]).boxed())),
        Some(Image::Stored(file)) => file,
    };
    let Some(found) = file.read(None).await? else { return Ok(None) };
    Ok(Some(match found.content {
        Content::File(file) => ReaderStream::with_capacity(tokio::fs::File::from_std(file), BUFFER).boxed(),
        Content::Stream(stream) => stream,
    }))
}

/// The time in UTC. The format has none before 1980.
fn zip_date(at: Timestamp) -> ZipDateTime {
    let text = at.to_string();
    let part = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0);
    ZipDateTimeBuilder::new()
        .year(i32::try_from(part(0, 4)).unwrap_or(0).max(1980))
        .month(part(5, 7))
        .day(part(8, 10))
        .hour(part(11, 13))
        .minute(part(14, 16))
        .second(part(17, 19))
        .build()
}
