//! Creates monitors.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::{MonitorId, TeamId};
use grabd_domain::monitor::{Monitor, MonitorSpec, MonitorState, Phase, Progress, Schedule};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{EntityTrait, PaginatorTrait, QuerySelect};
use uuid::Uuid;

use crate::areas::Monitors;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::grab::write_spec;
use crate::entities::monitor::{self, of_team};
use crate::entities::oauth_grant;
use crate::team_lock::lock_team;
use crate::{Result, codes};

/// A monitor to create.
#[derive(Clone, Debug)]
pub struct NewMonitor {
    /// Its id.
    pub id: MonitorId,
    /// The owning team.
    pub team: TeamId,
    /// The environment of its grabs.
    pub environment: Environment,
    /// Who creates it.
    pub creator: Principal,
    /// What it does.
    pub spec: MonitorSpec,
    /// The secret options of its capture, encrypted.
    pub secrets: Option<Vec<u8>>,
    /// How much later than its schedule says it runs.
    pub phase: Phase,
    /// How many monitors the team may have in the environment.
    pub limit: u64,
    /// How many runs they may keep together.
    pub kept_limit: u64,
    /// Current time.
    pub now: Timestamp,
}

/// Monitors of one team and environment that are created together.
struct NewMonitors(Vec<NewMonitor>);

/// Outcome of creating a monitor, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateMonitorOutcome<T = Box<Monitor>> {
    /// What was created.
    Created(T),
    /// Nothing was created: the team has reached the limit in this environment.
    TooMany,
    /// Nothing was created: all monitors together would keep too many runs.
    TooManyRuns {
        /// How many more they may keep.
        left: u64,
    },
    /// Nothing was created: the team does not exist or is inactive.
    TeamInactive,
    /// Nothing was created: the grant of the app has just ended.
    AccessEnded,
}

impl Monitors<'_> {
    /// Creates a monitor. One with an interval is due at once.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn create(self, new: NewMonitor) -> Result<CreateMonitorOutcome> {
        let event = AuditEvent::new("monitor.create", &new.id, Some(new.team)).with(&new.spec.name);
        let created = |outcome: &CreateMonitorOutcome| matches!(outcome, CreateMonitorOutcome::Created(_));
        self.store.write_audited(new, event, created).await
    }

    /// Creates monitors of one team and environment, all or none. Those with an interval are due after the delay of each, so that
    /// their first runs do not all begin in the same second. Limits and creator are those of the first one.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn create_all(self, new: Vec<NewMonitor>) -> Result<CreateMonitorOutcome<Vec<Monitor>>> {
        let describe = |outcome: &CreateMonitorOutcome<Vec<Monitor>>| match outcome {
            CreateMonitorOutcome::Created(created) => created.iter().map(event_of).collect::<Vec<_>>(),
            CreateMonitorOutcome::TooMany
            | CreateMonitorOutcome::TooManyRuns { .. }
            | CreateMonitorOutcome::TeamInactive
            | CreateMonitorOutcome::AccessEnded => Vec::new(),
        };
        self.store.write_described_all(NewMonitors(new), describe).await
    }
}

/// The entry of the audit trail about a new monitor.
fn event_of(monitor: &Monitor) -> AuditEvent {
    AuditEvent::new("monitor.create", &monitor.id, Some(monitor.team)).with(&monitor.spec.name)
}

impl Transaction for NewMonitor {
    type Outcome = CreateMonitorOutcome;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<CreateMonitorOutcome> {
        if let Some(refused) = self.refusal(tx, 1, self.spec.keep.into()).await? {
            return Ok(refused);
        }
        Ok(CreateMonitorOutcome::Created(Box::new(self.insert(tx, self.first_due(Duration::ZERO)).await?)))
    }
}

impl Transaction for NewMonitors {
    type Outcome = CreateMonitorOutcome<Vec<Monitor>>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<CreateMonitorOutcome<Vec<Monitor>>> {
        let Self(all) = self;
        let Some(first) = all.first() else { return Ok(CreateMonitorOutcome::Created(Vec::new())) };
        let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
        let kept: u64 = all.iter().map(|new| u64::from(new.spec.keep)).sum();
        if let Some(refused) = first.refusal(tx, count, kept).await? {
            return Ok(refused);
        }
        let mut created = Vec::with_capacity(all.len());
        for new in all {
            created.push(new.insert(tx, new.first_due(new.spec.schedule.delay(new.phase))).await?);
        }
        Ok(CreateMonitorOutcome::Created(created))
    }
}

/// How many runs the monitors of a team keep together, except one of them.
pub(super) async fn kept_runs(
    tx: &Tx,
    team: TeamId,
    environment: Environment,
    except: Option<MonitorId>,
) -> Result<u64> {
    let rows: Vec<(Uuid, i32)> = of_team(team, environment)
        .select_only()
        .columns([monitor::Column::Id, monitor::Column::Keep])
        .into_tuple()
        .all(tx)
        .await?;
    let others = rows.into_iter().filter(|(id, _)| except.is_none_or(|except| except.0 != *id));
    Ok(others.map(|(_, keep)| u64::try_from(keep).unwrap_or(0)).sum())
}

impl NewMonitor {
    /// Why so many monitors, which keep so many runs together, cannot be created like this one. `None` if they can. The team stays
    /// locked.
    async fn refusal<T>(&self, tx: &Tx, count: u64, kept: u64) -> Result<Option<CreateMonitorOutcome<T>>> {
        // The lock makes the count exact under concurrent creates.
        if lock_team(tx, self.team).await?.is_none() {
            return Ok(Some(CreateMonitorOutcome::TeamInactive));
        }
        if of_team(self.team, self.environment).count(tx).await? + count > self.limit {
            return Ok(Some(CreateMonitorOutcome::TooMany));
        }
        let left = self.kept_limit.saturating_sub(kept_runs(tx, self.team, self.environment, None).await?);
        if kept > left {
            return Ok(Some(CreateMonitorOutcome::TooManyRuns { left }));
        }
        if let Some(grant) = self.creator.grant() {
            // The lock conflicts with the end of the grant, which deletes the monitor.
            let grant = oauth_grant::Entity::find_by_id(grant.0).lock(LockType::KeyShare);
            if grant.one(tx).await?.is_none() {
                return Ok(Some(CreateMonitorOutcome::AccessEnded));
            }
        }
        Ok(None)
    }

    /// The first due time: after this delay if the schedule is an interval.
    fn first_due(&self, delay: Duration) -> Option<Timestamp> {
        match &self.spec.schedule {
            Schedule::Every(_) => Some(self.now + delay),
            Schedule::Cron(_) => self.spec.schedule.first_after(self.now, self.phase),
        }
    }

    /// Inserts the monitor, which is due at a time.
    async fn insert(&self, tx: &Tx, next_run_at: Option<Timestamp>) -> Result<Monitor> {
        let spec = MonitorSpec { capture: self.spec.capture.without_secrets(), ..self.spec.clone() };
        monitor::Entity::insert(self.row(&spec, next_run_at)?).exec_without_returning(tx).await?;
        Ok(Monitor {
            id: self.id,
            team: self.team,
            environment: self.environment,
            creator: self.creator,
            spec,
            state: MonitorState::Active,
            progress: Progress::default(),
            created_at: self.now,
            updated_at: self.now,
            next_run_at,
            baseline: None,
            has_feed: false,
            last_run: None,
        })
    }

    fn row(&self, spec: &MonitorSpec, next_run_at: Option<Timestamp>) -> Result<monitor::ActiveModel> {
        let (creator, creator_id) = monitor::creator(self.creator);
        let (every, cron, time_zone) = monitor::schedule(&spec.schedule);
        let (quiet_from, quiet_to, quiet_zone) = monitor::quiet(spec.quiet.as_ref());
        let columns = monitor::compare(&spec.compare)?;
        Ok(monitor::ActiveModel {
            id: Set(self.id.0),
            team_id: Set(self.team.0),
            env: Set(codes::environment(self.environment)),
            creator: Set(creator),
            creator_id: Set(creator_id),
            grant_id: Set(self.creator.grant().map(|grant| grant.0)),
            name: Set(spec.name.clone()),
            capture: Set(write_spec(&spec.capture)?),
            secrets: Set(self.secrets.clone()),
            every: Set(every),
            cron: Set(cron),
            time_zone: Set(time_zone),
            threshold_ppm: Set(columns.threshold_ppm),
            ignored: Set(columns.ignored),
            ignored_areas: Set(columns.ignored_areas),
            min_region_px: Set(columns.min_region_px),
            compares_status: Set(columns.compares_status),
            text_patterns: Set(columns.text_patterns),
            compares_elements: Set(columns.compares_elements),
            baseline: Set(columns.baseline),
            alert_after: Set(i16::try_from(spec.alert_after).unwrap_or(i16::MAX)),
            notify: Set(monitor::notify(spec.notify)),
            quiet_from: Set(quiet_from),
            quiet_to: Set(quiet_to),
            quiet_zone: Set(quiet_zone),
            keep: Set(i32::try_from(spec.keep).unwrap_or(i32::MAX)),
            state: Set(monitor::state(MonitorState::Active)),
            differing: Set(0),
            change_reported: Set(0),
            failures: Set(0),
            failure_reported: Set(0),
            held_until: Set(None),
            held_change_id: Set(None),
            held_failure_id: Set(None),
            feed_hash: Set(None),
            phase: Set(i16::try_from(self.phase.0).unwrap_or(0)),
            created_at: Set(self.now.as_ms()),
            updated_at: Set(self.now.as_ms()),
            next_run_at: Set(next_run_at.map(Timestamp::as_ms)),
            baseline_grab_id: Set(None),
            last_run_id: Set(None),
        })
    }
}
