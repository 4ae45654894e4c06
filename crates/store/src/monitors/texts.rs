//! Finds the texts that a run compares.

use grabd_domain::Timestamp;
use grabd_domain::capture::FileKind;
use grabd_domain::grabs::{GrabFile, State};
use grabd_domain::ids::RunId;
use grabd_domain::monitor::TextCompare;
use sea_orm::EntityTrait;
use uuid::Uuid;

use super::queries::RUNS;
use crate::Result;
use crate::areas::Monitors;
use crate::codes::DONE;
use crate::entities::{grab, monitor, monitor_run};

/// The texts of the captures that a run compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedTexts {
    /// How they are compared.
    pub compare: TextCompare,
    /// That of the baseline. `None` if it was made without a text.
    pub before: Option<GrabFile>,
    /// That of the run.
    pub after: Option<GrabFile>,
}

impl Monitors<'_> {
    /// The texts that a run with an ended grab compares. `None` if it compares none. A run that cannot be processed is set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn texts_of(self, run: RunId, now: Timestamp) -> Result<Option<ComparedTexts>> {
        let found = self.find_texts(run).await;
        Ok(self.store.set_aside.unless_row_fails(RUNS, &run.0, now, found)?.flatten())
    }

    async fn find_texts(self, run: RunId) -> Result<Option<ComparedTexts>> {
        let db = self.store.database.reader();
        let Some(run) = monitor_run::Entity::find_by_id(run.0).one(db).await? else { return Ok(None) };
        let Some(row) = monitor::Entity::find_by_id(run.monitor_id).one(db).await? else { return Ok(None) };
        let Some(compare) = monitor::read_compare(&row)?.text else { return Ok(None) };
        let (Some(before), Some(after)) = (run.compared_to, run.grab_id) else { return Ok(None) };
        let (before, after) = (self.text_of(before).await?, self.text_of(after).await?);
        Ok(Some(ComparedTexts { compare, before, after }))
    }

    /// The text of a done grab.
    async fn text_of(self, grab: Uuid) -> Result<Option<GrabFile>> {
        let Some(row) = grab::Entity::find_by_id(grab).one(self.store.database.reader()).await? else {
            return Ok(None);
        };
        if row.status != DONE {
            return Ok(None);
        }
        let State::Done { metadata, .. } = grab::read(row, None)?.state else { return Ok(None) };
        Ok(metadata.files.into_iter().find(|file| file.kind == FileKind::Text))
    }
}
