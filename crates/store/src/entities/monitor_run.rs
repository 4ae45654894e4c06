//! Runs of monitors: one row for each due time.

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrabId, MonitorId, RunId};
use grabd_domain::monitor::{Change, ElementChange, Run, RunError, RunOutcome, TextChange};
use sea_orm::entity::prelude::*;

use super::grab;
use crate::codes::{read_count, read_time};
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "monitor_runs")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) monitor_id: Uuid,
    pub(crate) due_at: i64,
    pub(crate) outcome: i16,
    pub(crate) grab_id: Option<Uuid>,
    /// The grab of the baseline. NULL: there is none.
    pub(crate) compared_to: Option<Uuid>,
    pub(crate) difference_ppm: Option<i32>,
    /// One bit for each kind of change.
    pub(crate) changes: i16,
    /// The lines in which the texts differ, as JSON. NULL: there are none.
    pub(crate) text_changes: Option<String>,
    /// The elements that differ, as JSON. NULL: there are none.
    pub(crate) element_changes: Option<String>,
    pub(crate) alerted: i16,
    pub(crate) finished_at: Option<i64>,
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
    /// When its start began.
    pub(crate) claimed_at: i64,
    /// Without a grab: when its creation is tried again. NULL: the run has ended.
    pub(crate) check_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// From a run to its grab.
pub(crate) fn to_grab() -> RelationDef {
    Entity::belongs_to(grab::Entity).from(Column::GrabId).to(grab::Column::Id).into()
}

/// The id of the run at a due time, always the same.
pub(crate) fn id_of(monitor: MonitorId, due: Timestamp) -> RunId {
    RunId(Uuid::new_v5(&monitor.0, &due.as_ms().to_be_bytes()))
}

pub(crate) const fn outcome(outcome: RunOutcome) -> i16 {
    match outcome {
        RunOutcome::Running => 0,
        RunOutcome::First => 1,
        RunOutcome::Same => 2,
        RunOutcome::Changed => 3,
        RunOutcome::Failed => 4,
        RunOutcome::Missed => 5,
    }
}

fn read_outcome(code: i16) -> Result<RunOutcome> {
    RunOutcome::ALL
        .into_iter()
        .find(|known| outcome(*known) == code)
        .ok_or(Error::Inconsistent("unknown outcome code of a run"))
}

const fn bit(change: Change) -> i16 {
    match change {
        Change::Image => 1,
        Change::Status => 2,
        Change::Text => 4,
        Change::Elements => 8,
    }
}

/// One bit for each kind of change.
pub(crate) fn changes(changes: &[Change]) -> i16 {
    changes.iter().fold(0, |bits, change| bits | bit(*change))
}

fn read_changes(bits: i16) -> Vec<Change> {
    Change::ALL.into_iter().filter(|change| bits & bit(*change) != 0).collect()
}

/// The value of `text_changes`.
pub(crate) fn text_changes(changes: &[TextChange]) -> Result<Option<String>> {
    if changes.is_empty() {
        return Ok(None);
    }
    let json = serde_json::to_string(changes);
    json.map(Some).map_err(|_| Error::Inconsistent("text changes of a run cannot be serialized"))
}

fn read_text_changes(json: Option<&str>) -> Result<Vec<TextChange>> {
    let Some(json) = json else { return Ok(Vec::new()) };
    serde_json::from_str(json).map_err(|_| Error::Inconsistent("text changes of a run cannot be parsed"))
}

/// The value of `element_changes`.
pub(crate) fn element_changes(changes: &[ElementChange]) -> Result<Option<String>> {
    if changes.is_empty() {
        return Ok(None);
    }
    let json = serde_json::to_string(changes);
    json.map(Some).map_err(|_| Error::Inconsistent("element changes of a run cannot be serialized"))
}

fn read_element_changes(json: Option<&str>) -> Result<Vec<ElementChange>> {
    let Some(json) = json else { return Ok(Vec::new()) };
    serde_json::from_str(json).map_err(|_| Error::Inconsistent("element changes of a run cannot be parsed"))
}

/// Converts a row.
pub(crate) fn read(row: &Model) -> Result<Run> {
    let error = match (&row.error_code, &row.error_message) {
        (Some(code), Some(message)) => Some(RunError { code: code.clone(), message: message.clone() }),
        (_, _) => None,
    };
    Ok(Run {
        id: RunId(row.id),
        monitor: MonitorId(row.monitor_id),
        due_at: Timestamp::from_ms(row.due_at),
        outcome: read_outcome(row.outcome)?,
        grab: row.grab_id.map(GrabId),
        compared_to: row.compared_to.map(GrabId),
        difference_ppm: row.difference_ppm.map(read_count).transpose()?,
        changes: read_changes(row.changes),
        text_changes: read_text_changes(row.text_changes.as_deref())?,
        element_changes: read_element_changes(row.element_changes.as_deref())?,
        is_alerted: row.alerted != 0,
        finished_at: read_time(row.finished_at),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_what_was_written() {
        for known in RunOutcome::ALL {
            assert_eq!(read_outcome(outcome(known)).unwrap(), known);
        }
        for known in [&[][..], &[Change::Image], &[Change::Status, Change::Text], &Change::ALL] {
            assert_eq!(read_changes(changes(known)), known);
        }
        assert!(read_outcome(6).is_err());
        let line = TextChange { before: None, after: Some("\0".to_owned()) };
        for known in [Vec::new(), vec![line]] {
            assert_eq!(read_text_changes(text_changes(&known).unwrap().as_deref()).unwrap(), known);
        }
        let element = ElementChange::moved("button", "\0Buy", "1,2 3x4", "1,9 3x4");
        for known in [Vec::new(), vec![ElementChange::added("link", ""), element]] {
            assert_eq!(read_element_changes(element_changes(&known).unwrap().as_deref()).unwrap(), known);
        }
    }

    #[test]
    fn run_of_a_due_time_always_has_the_same_id() {
        let id = |monitor: u128, due| id_of(MonitorId(Uuid::from_u128(monitor)), Timestamp::from_ms(due));
        assert_eq!(id(1, 5), id(1, 5));
        assert!(id(1, 5) != id(1, 6) && id(1, 5) != id(2, 5));
    }
}
