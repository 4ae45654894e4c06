//! The history of a monitor as a zip archive.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::State;
use grabd_domain::ids::{GrabId, MonitorId, RunId};
use grabd_domain::monitor::{Monitor, Run};
use grabd_store::Store;
use grabd_store::monitors::RunPage;

use super::manage::get;
use crate::api_monitor::{api_monitor, api_run};
use crate::error::Error;
use crate::grabs::{ArchiveError, ArchivedFile, ArchivedImage, MAX_ARCHIVE_BYTES, archive_with};
use crate::service::Core;

/// Runs in memory at a time.
const PAGE: u32 = 100;
/// The file with the monitor and its runs.
const RUNS: &str = "runs.json";
/// Seconds after which another download of the account may be possible.
const RETRY_AFTER_S: u64 = 30;

/// A part of the file with the runs.
enum Part {
    /// The monitor.
    Head(String),
    /// The runs after this one.
    Runs(Option<RunId>),
    End,
}

/// An archive of a monitor: the images of its runs that still exist, and `runs.json` with the monitor and all its runs, newest
/// first. If the images are too large together, those of the oldest runs are left out. It is read while it is sent, and ends with
/// an error if it is incomplete.
///
/// # Errors
/// [`Fault::NotFound`] when the monitor does not exist or is not the caller's, and [`Fault::ImagesBusy`] when the account
/// receives another archive.
#[tracing::instrument(name = "monitors.history", skip_all)]
pub async fn history(
    core: &Core,
    caller: Caller,
    id: MonitorId,
) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>, Error> {
    let monitor = get(core, caller, id).await?;
    let (names, images) = images(core, id).await?;
    let chunks = index(core.store.clone(), &monitor, names)?;
    let runs = ArchivedFile { name: RUNS.to_owned(), chunks, created_at: core.clock.now() };
    archive_with(core, caller.team, Some(runs), images).await.map_err(|error| match error {
        ArchiveError::AccountBusy | ArchiveError::Busy => Fault::ImagesBusy { retry_after_s: RETRY_AFTER_S }.into(),
        ArchiveError::Internal(error) => error,
    })
}

/// The names of the runs' images, and the images, newest first. Those from the first one on that does not fit are left out.
async fn images(core: &Core, id: MonitorId) -> Result<(HashMap<RunId, String>, Vec<ArchivedImage>), Error> {
    let (mut names, mut images) = (HashMap::new(), Vec::new());
    let (mut bytes, mut after) = (0_u64, None);
    while let Some(RunPage { runs, has_more }) = core.store.monitors().list_runs(id, after, PAGE).await? {
        let ids: Vec<GrabId> = runs.iter().filter_map(|run| run.grab).collect();
        let grabs = core.store.grabs().find_grabs(&ids).await?;
        for run in &runs {
            let Some(grab) = grabs.iter().find(|grab| run.grab == Some(grab.id)) else { continue };
            let State::Done { image: Some(key), size_bytes, .. } = &grab.state else { continue };
            if grab.deleted_at.is_some() {
                continue;
            }
            bytes = bytes.saturating_add(*size_bytes);
            if bytes > MAX_ARCHIVE_BYTES {
                return Ok((names, images));
            }
            let name = image_name(run, key.format().as_str());
            names.insert(run.id, name.clone());
            images.push(ArchivedImage { name, key: key.clone(), created_at: grab.created_at });
        }
        after = runs.last().map(|run| run.id);
        if !has_more {
            break;
        }
    }
    Ok((names, images))
}

/// The file of a run's image, such as `2026-11-21T09-30-12-480Z-changed.png`. A due time has one run.
fn image_name(run: &Run, extension: &str) -> String {
    format!("{}-{}.{extension}", run.due_at.to_string().replace([':', '.'], "-"), run.outcome.as_str())
}

/// The file with the runs, which are read in pages.
fn index(
    store: Store,
    monitor: &Monitor,
    names: HashMap<RunId, String>,
) -> Result<BoxStream<'static, io::Result<Bytes>>, Error> {
    let head = format!("{{\"monitor\":{},\"runs\":[", serde_json::to_string(&api_monitor(monitor))?);
    let (id, names) = (monitor.id, Arc::new(names));
    let parts = stream::try_unfold(Part::Head(head), move |part| {
        let (store, names) = (store.clone(), Arc::clone(&names));
        async move {
            let (text, next) = match part {
                Part::Head(head) => (head, Part::Runs(None)),
                Part::Runs(after) => runs_part(&store, id, after, &names).await?,
                Part::End => return Ok(None),
            };
            Ok::<_, io::Error>(Some((Bytes::from(text), next)))
        }
    });
    Ok(parts.boxed())
}

/// The next runs, and what follows them.
async fn runs_part(
    store: &Store,
    id: MonitorId,
    after: Option<RunId>,
    names: &HashMap<RunId, String>,
) -> io::Result<(String, Part)> {
    let page = store.monitors().list_runs(id, after, PAGE).await.map_err(io::Error::other)?;
    // The run before was deleted in the meantime, and so were all that are older.
    let Some(RunPage { runs, has_more }) = page else { return Ok(("]}".to_owned(), Part::End)) };
    let mut text = String::new();
    for (at, run) in runs.iter().enumerate() {
        if after.is_some() || at > 0 {
            text.push(',');
        }
        let mut shown = serde_json::to_value(api_run(run)).map_err(io::Error::other)?;
        shown["image"] = names.get(&run.id).cloned().into();
        text.push_str(&shown.to_string());
    }
    match runs.last().filter(|_| has_more) {
        Some(last) => Ok((text, Part::Runs(Some(last.id)))),
        None => {
            text.push_str("]}");
            Ok((text, Part::End))
        }
    }
}
