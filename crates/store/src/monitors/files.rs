//! Finds the files that a run compares.

use grabd_domain::Timestamp;
use grabd_domain::capture::FileKind;
use grabd_domain::grabs::{GrabFile, State};
use grabd_domain::ids::RunId;
use grabd_domain::monitor::{Compare, TextCompare};
use sea_orm::EntityTrait;
use uuid::Uuid;

use super::queries::RUNS;
use crate::Result;
use crate::areas::Monitors;
use crate::codes::DONE;
use crate::entities::{grab, monitor, monitor_run};

/// The files of the captures that a run compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedFiles {
    /// How texts are compared, and both texts. `None` if they are not.
    pub texts: Option<(TextCompare, Files)>,
    /// Both files with the elements. `None` if they are not compared.
    pub elements: Option<ElementFiles>,
}

/// The file of the baseline, and that of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// That of the baseline. `None` if it was made without.
    pub before: Option<GrabFile>,
    /// That of the run.
    pub after: Option<GrabFile>,
}

/// Both files with the elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementFiles {
    /// The files.
    pub files: Files,
    /// Image pixels per CSS pixel in the run, in hundredths.
    pub scale_hundredths: u16,
}

impl Monitors<'_> {
    /// The files that a run with an ended grab compares. `None` if it compares none. A run that cannot be processed is set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn files_of(self, run: RunId, now: Timestamp) -> Result<Option<ComparedFiles>> {
        let found = self.find_files(run).await;
        Ok(self.store.set_aside.unless_row_fails(RUNS, &run.0, now, found)?.flatten())
    }

    async fn find_files(self, run: RunId) -> Result<Option<ComparedFiles>> {
        let db = self.store.database.reader();
        let Some(run) = monitor_run::Entity::find_by_id(run.0).one(db).await? else { return Ok(None) };
        let Some(row) = monitor::Entity::find_by_id(run.monitor_id).one(db).await? else { return Ok(None) };
        let Compare { image: _, status: _, text, elements, baseline: _ } = monitor::read_compare(&row)?;
        let (Some(before), Some(after)) = (run.compared_to, run.grab_id) else { return Ok(None) };
        if text.is_none() && !elements {
            return Ok(None);
        }
        let scale_hundredths = grab::read_spec(&row.capture)?.scale.hundredths();
        let (before, after) = (self.files_of_grab(before).await?, self.files_of_grab(after).await?);
        let both = |kind: FileKind| {
            let of = |files: &[GrabFile]| files.iter().find(|file| file.kind == kind).cloned();
            Files { before: of(&before), after: of(&after) }
        };
        let texts = text.map(|compare| (compare, both(FileKind::Text)));
        let elements = elements.then(|| ElementFiles { files: both(FileKind::Elements), scale_hundredths });
        Ok(Some(ComparedFiles { texts, elements }))
    }

    /// The files of a done grab.
    async fn files_of_grab(self, grab: Uuid) -> Result<Vec<GrabFile>> {
        let Some(row) = grab::Entity::find_by_id(grab).one(self.store.database.reader()).await? else {
            return Ok(Vec::new());
        };
        if row.status != DONE {
            return Ok(Vec::new());
        }
        match grab::read(row, None)?.state {
            State::Done { metadata, .. } => Ok(metadata.files),
            State::Pending | State::Processing | State::Failed { .. } => Ok(Vec::new()),
        }
    }
}
