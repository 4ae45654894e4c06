//! Monitors: captures that are repeated by a schedule.

use grabd_domain::Timestamp;
use grabd_domain::capture::Rectangle;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::{GrabId, GrantId, KeyId, MonitorId, TeamId, UserId};
use grabd_domain::monitor::{
    Baseline, Compare, Cron, Every, ImageCompare, LocalCron, Monitor, MonitorSpec, MonitorState, Notify, Phase,
    Progress, Quiet, Run, Schedule, TextCompare,
};
use sea_orm::entity::prelude::*;

use super::grab::read_spec;
use crate::codes::{self, read_count, read_time};
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "monitors")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) env: i16,
    /// What created it: an API key, a user or an app.
    pub(crate) creator: i16,
    /// The id of the key, user or grant, which may have been deleted, except the grant.
    pub(crate) creator_id: Uuid,
    /// The grant of the app that created the monitor, which is deleted with it.
    pub(crate) grant_id: Option<Uuid>,
    pub(crate) name: String,
    /// The capture spec as JSON.
    pub(crate) capture: String,
    /// The secret options of the capture, encrypted with a key that is not in the database.
    pub(crate) secrets: Option<Vec<u8>>,
    /// The interval, or NULL with a cron expression.
    pub(crate) every: Option<String>,
    pub(crate) cron: Option<String>,
    pub(crate) time_zone: Option<String>,
    /// NULL: images are not compared.
    pub(crate) threshold_ppm: Option<i32>,
    /// The selectors of ignored elements, as JSON.
    pub(crate) ignored: String,
    /// Ignored rectangles, as JSON. NULL: there are none.
    pub(crate) ignored_areas: Option<String>,
    pub(crate) min_region_px: i32,
    pub(crate) compares_status: i16,
    /// Regular expressions as JSON. NULL: texts are not compared.
    pub(crate) text_patterns: Option<String>,
    pub(crate) compares_elements: i16,
    pub(crate) baseline: i16,
    pub(crate) alert_after: i16,
    /// One bit for each way.
    pub(crate) notify: i16,
    /// Minutes of the day. NULL: alerts are sent at any time.
    pub(crate) quiet_from: Option<i16>,
    pub(crate) quiet_to: Option<i16>,
    pub(crate) quiet_zone: Option<String>,
    pub(crate) keep: i32,
    pub(crate) state: i16,
    pub(crate) differing: i32,
    pub(crate) change_reported: i16,
    pub(crate) failures: i32,
    pub(crate) failure_reported: i16,
    /// When the alerts of quiet hours are sent. NULL: there are none.
    pub(crate) held_until: Option<i64>,
    /// The last run with a change that is to be reported.
    pub(crate) held_change_id: Option<Uuid>,
    /// The last run with a failure, or its end, that is to be reported.
    pub(crate) held_failure_id: Option<Uuid>,
    /// SHA-256 of the secret part of the address of the feed. NULL: there is no feed.
    pub(crate) feed_hash: Option<Vec<u8>>,
    pub(crate) phase: i16,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    /// NULL: it is paused.
    pub(crate) next_run_at: Option<i64>,
    pub(crate) baseline_grab_id: Option<Uuid>,
    pub(crate) last_run_id: Option<Uuid>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Monitors visible to a caller: all of the team, or those that an app has created with its grant. Every read or change on
/// behalf of a caller starts from this query.
pub(crate) fn scoped(team: TeamId, environment: Environment, grant: Option<GrantId>) -> Select<Entity> {
    let of_team = of_team(team, environment);
    match grant {
        None => of_team,
        Some(grant) => of_team.filter(Column::GrantId.eq(grant.0)),
    }
}

/// All monitors of a team, which share its limit.
pub(crate) fn of_team(team: TeamId, environment: Environment) -> Select<Entity> {
    Entity::find().filter(Column::TeamId.eq(team.0)).filter(Column::Env.eq(codes::environment(environment)))
}

/// The values of `creator` and `creator_id`.
pub(crate) const fn creator(creator: Principal) -> (i16, Uuid) {
    match creator {
        Principal::Key(key) => (0, key.0),
        Principal::User(user) => (1, user.0),
        Principal::Grant(grant) => (2, grant.0),
    }
}

fn read_creator(code: i16, id: Uuid) -> Result<Principal> {
    let known = [Principal::Key(KeyId(id)), Principal::User(UserId(id)), Principal::Grant(GrantId(id))];
    known
        .into_iter()
        .find(|known| creator(*known).0 == code)
        .ok_or(Error::Inconsistent("unknown creator code of a monitor"))
}

pub(crate) const fn state(state: MonitorState) -> i16 {
    match state {
        MonitorState::Active => 0,
        MonitorState::Paused => 1,
        MonitorState::OutOfCredits => 2,
    }
}

pub(crate) fn read_state(code: i16) -> Result<MonitorState> {
    MonitorState::ALL
        .into_iter()
        .find(|known| state(*known) == code)
        .ok_or(Error::Inconsistent("unknown state code of a monitor"))
}

pub(crate) const fn baseline(baseline: Baseline) -> i16 {
    match baseline {
        Baseline::Latest => 0,
        Baseline::Accepted => 1,
    }
}

fn read_baseline(code: i16) -> Result<Baseline> {
    Baseline::ALL
        .into_iter()
        .find(|known| baseline(*known) == code)
        .ok_or(Error::Inconsistent("unknown baseline code of a monitor"))
}

/// One bit for each way.
pub(crate) fn notify(Notify { webhook, email }: Notify) -> i16 {
    i16::from(webhook) | i16::from(email) << 1
}

const fn read_notify(bits: i16) -> Notify {
    Notify { webhook: bits & 1 != 0, email: bits & 2 != 0 }
}

/// The values of `every`, `cron` and `time_zone`.
pub(crate) fn schedule(schedule: &Schedule) -> (Option<String>, Option<String>, Option<String>) {
    match schedule {
        Schedule::Every(every) => (Some(every.to_string()), None, None),
        Schedule::Cron(cron) => (None, Some(cron.cron().to_string()), Some(cron.zone_name().to_owned())),
    }
}

pub(crate) fn read_schedule(row: &Model) -> Result<Schedule> {
    let schedule = match (&row.every, &row.cron, &row.time_zone) {
        (Some(every), None, None) => Every::parse(every).map(Schedule::Every),
        (None, Some(cron), Some(zone)) => {
            Cron::parse(cron).and_then(|cron| LocalCron::new(cron, zone)).map(Schedule::Cron)
        }
        (_, _, _) => None,
    };
    schedule.ok_or(Error::Inconsistent("monitor without a valid schedule"))
}

/// What is compared, as a row has it.
pub(crate) struct CompareColumns {
    pub(crate) threshold_ppm: Option<i32>,
    pub(crate) ignored: String,
    pub(crate) ignored_areas: Option<String>,
    pub(crate) min_region_px: i32,
    pub(crate) compares_status: i16,
    pub(crate) text_patterns: Option<String>,
    pub(crate) compares_elements: i16,
    pub(crate) baseline: i16,
}

/// The values of the columns about what is compared.
pub(crate) fn compare(compare: &Compare) -> Result<CompareColumns> {
    let none: &[String] = &[];
    let ignored = compare.image.as_ref().map_or(none, |image| image.ignore.as_slice());
    let ignored = serde_json::to_string(ignored)
        .map_err(|_| Error::Inconsistent("ignored elements of a monitor cannot be serialized"))?;
    let areas = compare.image.as_ref().map(|image| &image.ignore_areas).filter(|areas| !areas.is_empty());
    let areas = areas.map(serde_json::to_string).transpose();
    let patterns = compare.text.as_ref().map(|text| serde_json::to_string(&text.ignore_patterns)).transpose();
    Ok(CompareColumns {
        threshold_ppm: compare.image.as_ref().map(|image| i32::try_from(image.threshold_ppm).unwrap_or(i32::MAX)),
        ignored,
        ignored_areas: areas.map_err(|_| Error::Inconsistent("ignored areas of a monitor cannot be serialized"))?,
        min_region_px: compare.image.as_ref().map_or(0, |image| i32::try_from(image.min_region_px).unwrap_or(i32::MAX)),
        compares_status: i16::from(compare.status),
        text_patterns: patterns.map_err(|_| Error::Inconsistent("patterns of a monitor cannot be serialized"))?,
        compares_elements: i16::from(compare.elements),
        baseline: baseline(compare.baseline),
    })
}

pub(crate) fn read_compare(row: &Model) -> Result<Compare> {
    let ignore: Vec<String> = serde_json::from_str(&row.ignored)
        .map_err(|_| Error::Inconsistent("ignored elements of a monitor cannot be parsed"))?;
    let threshold = row.threshold_ppm.map(read_count).transpose()?;
    let ignore_areas: Option<Vec<Rectangle>> = row
        .ignored_areas
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .map_err(|_| Error::Inconsistent("ignored areas of a monitor cannot be parsed"))?;
    let (ignore_areas, min_region_px) = (ignore_areas.unwrap_or_default(), read_count(row.min_region_px)?);
    let patterns: Option<Vec<String>> = row
        .text_patterns
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .map_err(|_| Error::Inconsistent("patterns of a monitor cannot be parsed"))?;
    Ok(Compare {
        image: threshold.map(|threshold_ppm| ImageCompare { threshold_ppm, ignore, ignore_areas, min_region_px }),
        status: row.compares_status != 0,
        text: patterns.map(|ignore_patterns| TextCompare { ignore_patterns }),
        elements: row.compares_elements != 0,
        baseline: read_baseline(row.baseline)?,
    })
}

/// The values of `quiet_from`, `quiet_to` and `quiet_zone`.
pub(crate) fn quiet(quiet: Option<&Quiet>) -> (Option<i16>, Option<i16>, Option<String>) {
    let Some(quiet) = quiet else { return (None, None, None) };
    let (from, to) = quiet.minutes();
    let minute = |minute: u16| i16::try_from(minute).ok();
    (minute(from), minute(to), Some(quiet.zone_name().to_owned()))
}

pub(crate) fn read_quiet(row: &Model) -> Result<Option<Quiet>> {
    let (from, to, zone) = match (row.quiet_from, row.quiet_to, &row.quiet_zone) {
        (None, None, None) => return Ok(None),
        (Some(from), Some(to), Some(zone)) => (from, to, zone),
        (_, _, _) => return Err(Error::Inconsistent("monitor with a part of quiet hours")),
    };
    let minute = |minute: i16| u16::try_from(minute).ok();
    let quiet = minute(from).zip(minute(to)).and_then(|(from, to)| Quiet::new(from, to, zone));
    quiet.map(Some).ok_or(Error::Inconsistent("monitor without valid quiet hours"))
}

pub(crate) fn read_phase(row: &Model) -> Result<Phase> {
    let phase = u16::try_from(row.phase).ok().filter(|phase| *phase <= Phase::MAX);
    phase.map(Phase).ok_or(Error::Inconsistent("monitor without a valid phase"))
}

pub(crate) fn read_progress(row: &Model) -> Result<Progress> {
    Ok(Progress {
        differing: read_count(row.differing)?,
        is_change_reported: row.change_reported != 0,
        failures: read_count(row.failures)?,
        is_failure_reported: row.failure_reported != 0,
    })
}

/// Converts a row, without the values of secret options.
pub(crate) fn read(row: &Model, last_run: Option<Run>) -> Result<Monitor> {
    Ok(Monitor {
        id: MonitorId(row.id),
        team: TeamId(row.team_id),
        environment: codes::read_environment(row.env)?,
        creator: read_creator(row.creator, row.creator_id)?,
        spec: MonitorSpec {
            name: row.name.clone(),
            capture: read_spec(&row.capture)?,
            schedule: read_schedule(row)?,
            compare: read_compare(row)?,
            alert_after: read_count(row.alert_after.into())?,
            notify: read_notify(row.notify),
            keep: read_count(row.keep)?,
            quiet: read_quiet(row)?,
        },
        state: read_state(row.state)?,
        progress: read_progress(row)?,
        created_at: Timestamp::from_ms(row.created_at),
        updated_at: Timestamp::from_ms(row.updated_at),
        next_run_at: read_time(row.next_run_at),
        baseline: row.baseline_grab_id.map(GrabId),
        has_feed: row.feed_hash.is_some(),
        last_run,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_what_was_written() {
        for known in MonitorState::ALL {
            assert_eq!(read_state(state(known)).unwrap(), known);
        }
        for known in Baseline::ALL {
            assert_eq!(read_baseline(baseline(known)).unwrap(), known);
        }
        for (webhook, email) in [(false, false), (true, false), (false, true), (true, true)] {
            let known = Notify { webhook, email };
            assert_eq!(read_notify(notify(known)), known);
        }
        let id = Uuid::from_u128(7);
        for known in [Principal::Key(KeyId(id)), Principal::User(UserId(id)), Principal::Grant(GrantId(id))] {
            let (code, id) = creator(known);
            assert_eq!(read_creator(code, id).unwrap(), known);
        }
        assert!(read_state(3).is_err() && read_baseline(2).is_err() && read_creator(3, id).is_err());
    }
}
