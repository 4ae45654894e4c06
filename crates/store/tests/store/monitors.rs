//! Monitors and their runs.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureRequest;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::grabs::{Class, Difference, RenderMetadata};
use grabd_domain::idempotency::IdempotencyKey;
use grabd_domain::ids::{DeliveryId, GrabId, GrantId, KeyId, MonitorId, RunId, TeamId};
use grabd_domain::monitor::{
    Baseline, Change, Compare, FileResult, FileResults, Monitor, MonitorChange, MonitorRequest, MonitorSpec,
    MonitorState, Phase, Run, RunError, RunOutcome, TextChange, TextCompare,
};
use grabd_domain::webhooks::Event;
use grabd_store::grabs::{Completion, FailureSource, NewGrab, NewRecord};
use grabd_store::monitors::{
    AcceptOutcome, ChangeOutcome, Claimed, CreateMonitorOutcome, FinishedRun, Leased, MonitorAlert, MonitorRef,
    MonitorUpdate, NewMonitor, RunResult, StartRun,
};

use crate::harness::{NOW, TestDb, completion, facts, failing, on_both};
use crate::webhooks::endpoint;

const HOUR: Duration = Duration::from_secs(60 * 60);
const LEASE: Duration = Duration::from_secs(30);

pub(crate) fn spec(change: impl FnOnce(&mut MonitorSpec)) -> MonitorSpec {
    let capture = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
    let request = MonitorRequest { capture: Some(capture), every: Some("1h".into()), ..MonitorRequest::default() };
    let mut spec = MonitorSpec::parse(&request, Duration::ZERO).unwrap();
    change(&mut spec);
    spec
}

pub(crate) fn new_monitor(id: MonitorId, team: TeamId, spec: MonitorSpec) -> NewMonitor {
    NewMonitor {
        id,
        team,
        environment: Environment::Live,
        creator: Principal::Key(KeyId(id.0)),
        spec,
        secrets: None,
        phase: Phase(0),
        limit: 50,
        kept_limit: 5000,
        now: NOW,
    }
}

pub(crate) fn text(alert: &MonitorAlert, _: DeliveryId, _: Timestamp) -> String {
    format!("{} {}", alert.event.as_str(), alert.run.outcome.as_str())
}

pub(crate) fn target(monitor: &Monitor) -> MonitorRef {
    MonitorRef { team: monitor.team, environment: monitor.environment, grant: None, monitor: monitor.id }
}

pub(crate) async fn created(db: &TestDb, team: TeamId, change: impl FnOnce(&mut MonitorSpec)) -> Monitor {
    let new = new_monitor(MonitorId(db.id()), team, spec(change));
    let created = db.store.monitors().create(new).await.unwrap();
    let CreateMonitorOutcome::Created(monitor) = created else { panic!("{created:?}") };
    *monitor
}

pub(crate) async fn find(db: &TestDb, monitor: &Monitor) -> Monitor {
    db.store.monitors().find(target(monitor)).await.unwrap().unwrap()
}

pub(crate) async fn runs(db: &TestDb, monitor: &Monitor) -> Vec<Run> {
    db.store.monitors().list_runs(monitor.id, None, 100).await.unwrap().unwrap().runs
}

async fn outcomes(db: &TestDb, monitor: &Monitor) -> Vec<&'static str> {
    runs(db, monitor).await.iter().map(|run| run.outcome.as_str()).collect()
}

/// Claims a monitor that is due.
async fn start(db: &TestDb, monitor: &Monitor, now: Timestamp) -> StartRun {
    match db.store.monitors().claim(monitor.id, now, now + LEASE).await.unwrap() {
        Some(Claimed::Run(start)) => *start,
        other => panic!("{other:?}"),
    }
}

/// Creates the grab of a run.
async fn attached(db: &TestDb, team: TeamId, run: RunId, now: Timestamp) -> GrabId {
    let new = db.new_grab(team, Class::Async);
    let id = new.id;
    db.store.grabs().create(new).await.unwrap();
    assert!(db.store.monitors().attach_grab(run, id, now).await.unwrap());
    id
}

/// How the grab of a run ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// It is done, with this difference in millionths.
    Done(u32),
    Failed,
}

/// Runs a monitor that is due.
pub(crate) async fn run(db: &TestDb, monitor: &Monitor, now: Timestamp, end: End) -> FinishedRun {
    run_with(db, monitor, now, end, FileResults::default()).await
}

/// The results of a comparison of texts only.
fn texts(result: FileResult<TextChange>) -> FileResults {
    FileResults { texts: Some(result), ..FileResults::default() }
}

/// Runs a monitor that is due, with these results for the files.
pub(crate) async fn run_with(
    db: &TestDb,
    monitor: &Monitor,
    now: Timestamp,
    end: End,
    files: FileResults,
) -> FinishedRun {
    let StartRun { run, compared_to, .. } = start(db, monitor, now).await;
    let grab = attached(db, monitor.team, run, now).await;
    assert_eq!(db.store.monitors().ended_runs(now, 9).await.unwrap(), []);
    match end {
        End::Done(changed_ppm) => {
            let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
            let difference =
                compared_to.map(|compared_to| Difference { compared_to, changed_ppm, regions: Vec::new() });
            let metadata = RenderMetadata { difference, ..facts() };
            db.store.grabs().complete(Completion { metadata, ..completion(&leased) }).await.unwrap().unwrap();
        }
        End::Failed => {
            db.store.grabs().fail(failing(grab, FailureSource::Cancel, NOW)).await.unwrap().unwrap();
        }
    }
    assert_eq!(db.store.monitors().ended_runs(now, 9).await.unwrap(), [run]);
    let result = RunResult::Grab(files);
    let finished = db.store.monitors().finish_run(run, result.clone(), now, text).await.unwrap().unwrap();
    assert_eq!(db.store.monitors().finish_run(run, result, now, text).await.unwrap(), None, "a second time");
    finished
}

/// The events of the alerts of a run.
pub(crate) fn events(finished: &FinishedRun) -> Vec<&'static str> {
    finished.alerts.iter().map(|alert| alert.event.as_str()).collect()
}

on_both! {
    async fn due_monitor_is_claimed_once_and_its_due_time_moves_on(db) {
        let monitor = created(db, db.team(9).await, |_| ()).await;
        assert_eq!((monitor.next_run_at, monitor.baseline, monitor.state), (Some(NOW), None, MonitorState::Active));
        assert_eq!(db.store.monitors().due(NOW, 9).await.unwrap(), [monitor.id]);
        let claims = (0..8).map(|_| db.store.monitors().claim(monitor.id, NOW, NOW + LEASE));
        let claimed: Vec<_> = join_all(claims).await.into_iter().filter_map(Result::unwrap).collect();
        assert!(matches!(claimed.as_slice(), [Claimed::Run(_)]), "{claimed:?}");
        let found = find(db, &monitor).await;
        assert_eq!(found.next_run_at, Some(NOW + HOUR));
        let last = found.last_run.unwrap();
        assert_eq!((last.due_at, last.outcome, last.grab), (NOW, RunOutcome::Running, None));
        assert_eq!(db.store.monitors().due(NOW, 9).await.unwrap(), []);
        assert_eq!(db.store.monitors().oldest_due(NOW + HOUR * 2).await.unwrap(), Some(NOW + HOUR));
        assert_eq!(runs(db, &monitor).await.len(), 1);
    }

    async fn due_times_that_have_passed_are_one_missed_run(db) {
        let monitor = created(db, db.team(9).await, |_| ()).await;
        run(db, &monitor, NOW, End::Done(0)).await;
        // 59 minutes late: no other due time has passed.
        run(db, &monitor, NOW + HOUR * 2 - Duration::from_secs(60), End::Done(0)).await;
        let late = NOW + HOUR * 5 + Duration::from_secs(60);
        let claimed = db.store.monitors().claim(monitor.id, late, late + LEASE).await.unwrap().unwrap();
        assert!(matches!(claimed, Claimed::Missed(_)), "{claimed:?}");
        assert_eq!(outcomes(db, &monitor).await, ["missed", "same", "first"]);
        let found = find(db, &monitor).await;
        assert_eq!(found.next_run_at, Some(NOW + HOUR * 6));
        let missed = found.last_run.unwrap();
        assert_eq!((missed.due_at, missed.finished_at), (NOW + HOUR * 2, Some(late)));
        assert_eq!(missed.error.unwrap().code, "missed");
    }

    async fn due_time_at_which_the_run_before_has_not_ended_is_missed(db) {
        let monitor = created(db, db.team(9).await, |_| ()).await;
        let first = start(db, &monitor, NOW).await;
        let later = NOW + HOUR;
        let claimed = db.store.monitors().claim(monitor.id, later, later + LEASE).await.unwrap().unwrap();
        assert!(matches!(claimed, Claimed::Missed(_)), "{claimed:?}");
        attached(db, monitor.team, first.run, later).await;
        assert_eq!(outcomes(db, &monitor).await, ["missed", "running"]);
    }

    async fn interrupted_start_is_leased_again_when_its_time_is_over(db) {
        let team = db.team(9).await;
        let monitor = created(db, team, |_| ()).await;
        let started = start(db, &monitor, NOW).await;
        let over = NOW + LEASE;
        assert_eq!(db.store.monitors().unstarted_runs(NOW, 9).await.unwrap(), []);
        assert_eq!(db.store.monitors().lease_run(started.run, NOW, over).await.unwrap(), None);
        assert_eq!(db.store.monitors().unstarted_runs(over, 9).await.unwrap(), [started.run]);
        let leases = (0..8).map(|_| db.store.monitors().lease_run(started.run, over, over + LEASE));
        let leased: Vec<_> = join_all(leases).await.into_iter().filter_map(Result::unwrap).collect();
        let [Leased::Run(again)] = leased.as_slice() else { panic!("{leased:?}") };
        assert_eq!((again.run, again.due_at, again.claimed_at), (started.run, NOW, NOW));
        assert!(!started.is_repeated && again.is_repeated);

        db.store.monitors().delay_run(started.run, over + HOUR).await.unwrap();
        assert_eq!(db.store.monitors().unstarted_runs(over + LEASE, 9).await.unwrap(), []);
        let grab = attached(db, team, started.run, over).await;
        let other = GrabId(db.id());
        assert!(!db.store.monitors().attach_grab(started.run, other, over).await.unwrap());
        assert_eq!(db.store.monitors().lease_run(started.run, over + HOUR, over + HOUR * 2).await.unwrap(), None);
        let error = RunError::new("internal_error", &"The start took too long.");
        for refused in [RunResult::Failed(error.clone()), RunResult::OutOfCredits(error)] {
            let finished = db.store.monitors().finish_run(started.run, refused, over, text).await.unwrap();
            assert_eq!(finished, None, "another process has created the grab");
        }
        let open = &runs(db, &monitor).await[0];
        assert_eq!((open.grab, open.outcome), (Some(grab), RunOutcome::Running));
    }

    async fn change_is_reported_once_and_becomes_the_baseline(db) {
        let team = db.team(9).await;
        let all = endpoint(db, team, &["monitor.changed"]).await;
        let other = endpoint(db, team, &["monitor.failed"]).await;
        let monitor = created(db, team, |_| ()).await;
        let first = run(db, &monitor, NOW, End::Done(0)).await;
        assert_eq!((first.run.outcome, first.monitor.baseline), (RunOutcome::First, first.run.grab));
        let same = run(db, &monitor, NOW + HOUR, End::Done(1000)).await;
        assert_eq!((same.run.outcome, same.run.difference_ppm), (RunOutcome::Same, Some(1000)));
        assert_eq!((same.run.compared_to, same.monitor.baseline), (first.run.grab, first.run.grab));
        let changed = run(db, &monitor, NOW + HOUR * 2, End::Done(1001)).await;
        assert_eq!((changed.run.outcome, changed.run.is_alerted), (RunOutcome::Changed, true));
        assert_eq!((&changed.run.changes, events(&changed)), (&vec![Change::Image], vec!["monitor.changed"]));
        assert_eq!(changed.monitor.baseline, changed.run.grab);
        assert_eq!(find(db, &monitor).await, changed.monitor);
        let after = run(db, &monitor, NOW + HOUR * 3, End::Done(0)).await;
        assert_eq!((after.run.outcome, after.run.compared_to), (RunOutcome::Same, changed.run.grab));

        let page = db.store.webhooks().list_deliveries(all.endpoint, None, 9, NOW).await.unwrap().unwrap();
        assert_eq!(page.deliveries.iter().map(|delivery| delivery.event).collect::<Vec<_>>(), [Event::MonitorChanged]);
        let none = db.store.webhooks().list_deliveries(other.endpoint, None, 9, NOW).await.unwrap().unwrap();
        assert_eq!(none.deliveries, []);
        let attempts = db.lease_due(NOW + HOUR * 3, 9, |_| String::new()).await;
        assert_eq!(attempts.iter().map(|attempt| attempt.body.as_str()).collect::<Vec<_>>(), ["monitor.changed changed"]);
    }

    async fn texts_are_kept_with_the_run_and_one_that_was_not_read_changes_nothing(db) {
        let monitor = created(db, db.team(9).await, |spec| {
            let text = TextCompare { ignore_patterns: vec!["[0-9]".to_owned()] };
            spec.compare = Compare { image: None, text: Some(text), ..Compare::default() };
            spec.alert_after = 2;
        })
        .await;
        assert_eq!(find(db, &monitor).await.spec.compare, monitor.spec.compare);
        run(db, &monitor, NOW, End::Done(0)).await;
        let line = TextChange { before: Some("a".to_owned()), after: None };
        let changed = || texts(FileResult::Compared(vec![line.clone()]));
        let first = run_with(db, &monitor, NOW + HOUR, End::Done(0), changed()).await;
        assert_eq!((first.run.outcome, &first.run.changes), (RunOutcome::Changed, &vec![Change::Text]));
        assert_eq!(first.run.text_changes, std::slice::from_ref(&line));
        assert_eq!(runs(db, &monitor).await[0], first.run);

        let unread = run_with(db, &monitor, NOW + HOUR * 2, End::Done(0), texts(FileResult::Unread)).await;
        assert_eq!((unread.run.outcome, events(&unread)), (RunOutcome::Same, vec![]));
        assert_eq!(unread.run.error.map(|error| error.code).as_deref(), Some("text_not_compared"));
        let second = run_with(db, &monitor, NOW + HOUR * 3, End::Done(0), changed()).await;
        assert_eq!(events(&second), ["monitor.changed"], "the count goes on");

        let baseline = second.monitor.baseline;
        let replaced = run_with(db, &monitor, NOW + HOUR * 4, End::Done(0), texts(FileResult::NoBaseline)).await;
        assert_eq!((replaced.run.outcome, replaced.run.compared_to), (RunOutcome::First, baseline));
        assert_eq!(replaced.monitor.baseline, replaced.run.grab);

        let reported = second.run.grab.unwrap();
        assert!(db.store.grabs().delete_grab(monitor.team, Environment::Live, reported, NOW + HOUR * 5).await.unwrap());
        let left: Vec<usize> = runs(db, &monitor).await.iter().map(|run| run.text_changes.len()).collect();
        assert_eq!(left, [0, 0, 0, 1, 0], "the lines of a deleted grab are erased");
    }

    async fn failures_and_their_end_are_reported_once(db) {
        let monitor = created(db, db.team(9).await, |_| ()).await;
        let mut reported = Vec::new();
        for (number, end) in [End::Failed, End::Failed, End::Failed, End::Failed, End::Done(0)].into_iter().enumerate() {
            let now = NOW + HOUR * u32::try_from(number).unwrap();
            let finished = run(db, &monitor, now, end).await;
            reported.push(events(&finished));
            assert_eq!(finished.run.error.is_some(), matches!(end, End::Failed));
        }
        assert_eq!(reported, [vec![], vec![], vec!["monitor.failed"], vec![], vec!["monitor.recovered"]]);
        assert_eq!(outcomes(db, &monitor).await, ["first", "failed", "failed", "failed", "failed"]);
        let error = runs(db, &monitor).await[1].error.clone().unwrap();
        assert_eq!(error, RunError::new("render_blocked", &"The site asked for a password."));
    }

    async fn monitor_without_credits_waits_and_continues_by_itself(db) {
        let team = db.team(9).await;
        let (monitor, other) = (created(db, team, |_| ()).await, created(db, team, |_| ()).await);
        let refused = || RunResult::OutOfCredits(RunError::new("credits_exhausted", &"No live credits left."));
        let end = async |monitor: &Monitor, now| {
            let run = start(db, monitor, now).await.run;
            db.store.monitors().finish_run(run, refused(), now, text).await.unwrap().unwrap()
        };
        let first = end(&monitor, NOW).await;
        assert_eq!((first.monitor.state, first.has_run_out), (MonitorState::OutOfCredits, true));
        assert!(!end(&other, NOW).await.has_run_out, "one message for the team");
        for hours in 1..3 {
            assert!(!end(&monitor, NOW + HOUR * hours).await.has_run_out);
        }
        // Only the first one is kept.
        assert_eq!(outcomes(db, &monitor).await, ["failed"]);
        let found = find(db, &monitor).await;
        assert_eq!((found.next_run_at, found.progress.failures), (Some(NOW + HOUR * 3), 0));
        assert_eq!(found.last_run.unwrap().due_at, NOW);
        let done = run(db, &monitor, NOW + HOUR * 3, End::Done(0)).await;
        assert_eq!(done.run.outcome, RunOutcome::First);
        assert_eq!(find(db, &monitor).await.state, MonitorState::Active);
    }

    async fn mail_about_credits_is_that_of_the_first_live_monitor_with_mail(db) {
        let team = db.team(9).await;
        let silent = created(db, team, |spec| spec.notify.email = false).await;
        let of_test = new_monitor(MonitorId(db.id()), team, spec(|_| ()));
        let of_test = NewMonitor { environment: Environment::Test, ..of_test };
        let CreateMonitorOutcome::Created(of_test) = db.store.monitors().create(of_test).await.unwrap() else {
            panic!("not created")
        };
        let (one, other) = (created(db, team, |_| ()).await, created(db, team, |_| ()).await);
        let mut has_run_out = Vec::new();
        for monitor in [silent, *of_test, one, other] {
            let run = start(db, &monitor, NOW).await.run;
            let refused = RunResult::OutOfCredits(RunError::new("credits_exhausted", &"No live credits left."));
            let finished = db.store.monitors().finish_run(run, refused, NOW, text).await.unwrap().unwrap();
            assert_eq!(finished.monitor.state, MonitorState::OutOfCredits);
            has_run_out.push(finished.has_run_out);
        }
        assert_eq!(has_run_out, [false, false, true, false]);
    }

    async fn accepted_capture_is_the_baseline_and_outdated_comparisons_have_no_effect(db) {
        let accepted = |spec: &mut MonitorSpec| spec.compare.baseline = Baseline::Accepted;
        let monitor = created(db, db.team(9).await, accepted).await;
        let accept = async |grab| db.store.monitors().accept(target(&monitor), grab, NOW).await.unwrap();
        assert_eq!(accept(None).await, AcceptOutcome::NoCapture);
        let first = run(db, &monitor, NOW, End::Done(0)).await;
        let changed = run(db, &monitor, NOW + HOUR, End::Done(5000)).await;
        assert_eq!((events(&changed), changed.monitor.baseline), (vec!["monitor.changed"], first.run.grab));
        assert_eq!(events(&run(db, &monitor, NOW + HOUR * 2, End::Done(5000)).await), [""; 0]);

        // A run that began before is compared with the former baseline.
        let now = NOW + HOUR * 3;
        let open = start(db, &monitor, now).await;
        assert_eq!(accept(Some(GrabId(db.id()))).await, AcceptOutcome::NoCapture);
        let AcceptOutcome::Accepted(with_new) = accept(changed.run.grab).await else { panic!("not accepted") };
        assert_eq!((with_new.baseline, with_new.progress.differing), (changed.run.grab, 0));
        attached(db, monitor.team, open.run, now).await;
        let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
        let difference = Difference { compared_to: open.compared_to.unwrap(), changed_ppm: 5000, regions: Vec::new() };
        let metadata = RenderMetadata { difference: Some(difference), ..facts() };
        db.store.grabs().complete(Completion { metadata, ..completion(&leased) }).await.unwrap().unwrap();
        let outdated = db.store.monitors().finish_run(open.run, RunResult::Grab(FileResults::default()), now, text).await.unwrap().unwrap();
        assert_eq!((outdated.run.outcome, events(&outdated)), (RunOutcome::Changed, vec![]));
        assert_eq!(find(db, &monitor).await.baseline, changed.run.grab);
    }

    async fn capture_without_a_usable_baseline_is_the_first_one(db) {
        let team = db.team(9).await;
        let monitor = created(db, team, |_| ()).await;
        let first = run(db, &monitor, NOW, End::Done(0)).await;
        let grab = first.run.grab.unwrap();
        assert!(db.store.grabs().delete_grab(team, Environment::Live, grab, NOW).await.unwrap());
        let again = run(db, &monitor, NOW + HOUR, End::Done(0)).await;
        assert_eq!((again.run.outcome, again.run.compared_to), (RunOutcome::First, None));
        assert_eq!(again.monitor.baseline, again.run.grab);
    }

    async fn capture_that_was_accepted_during_a_run_without_a_baseline_stays_the_baseline(db) {
        let team = db.team(9).await;
        let monitor = created(db, team, |spec| spec.compare.baseline = Baseline::Accepted).await;
        let first = run(db, &monitor, NOW, End::Done(0)).await;
        let same = run(db, &monitor, NOW + HOUR, End::Done(0)).await;
        let deleted = db.store.grabs().delete_grab(team, Environment::Live, first.run.grab.unwrap(), NOW).await;
        assert!(deleted.unwrap());
        let now = NOW + HOUR * 2;
        let open = start(db, &monitor, now).await;
        assert_eq!(open.compared_to, None);
        let accepted = db.store.monitors().accept(target(&monitor), same.run.grab, now).await.unwrap();
        assert!(matches!(accepted, AcceptOutcome::Accepted(_)), "{accepted:?}");
        attached(db, team, open.run, now).await;
        let leased = db.store.grabs().lease(db.lease_request(Class::Async, 1, NOW)).await.unwrap().pop().unwrap();
        db.store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
        let ended = db.store.monitors().finish_run(open.run, RunResult::Grab(FileResults::default()), now, text).await.unwrap().unwrap();
        assert_eq!((ended.run.outcome, ended.monitor.baseline), (RunOutcome::First, same.run.grab));
    }

    async fn only_the_newest_runs_are_kept(db) {
        let monitor = created(db, db.team(9).await, |spec| spec.keep = 2).await;
        for hours in 0..4 {
            run(db, &monitor, NOW + HOUR * hours, End::Done(0)).await;
        }
        let kept = runs(db, &monitor).await;
        assert_eq!(kept.iter().map(|run| run.due_at).collect::<Vec<_>>(), [NOW + HOUR * 3, NOW + HOUR * 2]);
        let page = db.store.monitors().list_runs(monitor.id, Some(kept[0].id), 1).await.unwrap().unwrap();
        assert_eq!((page.runs.as_slice(), page.has_more), (&kept[1..], false));
        assert_eq!(db.store.monitors().list_runs(monitor.id, Some(RunId(db.id())), 1).await.unwrap(), None);
    }

    async fn paused_monitor_is_not_due_and_its_schedule_begins_at_the_end_of_the_pause(db) {
        let monitor = created(db, db.team(9).await, |_| ()).await;
        let change = async |is_paused, now| {
            let change = MonitorChange { is_paused: Some(is_paused), ..MonitorChange::default() };
            let update = MonitorUpdate { target: target(&monitor), change, secrets: None, kept_limit: 5000, now };
            let changed = db.store.monitors().change(update).await.unwrap();
            let ChangeOutcome::Changed(monitor) = changed else { panic!("{changed:?}") };
            *monitor
        };
        let paused = change(true, NOW).await;
        assert_eq!((paused.state, paused.next_run_at), (MonitorState::Paused, None));
        assert_eq!(db.store.monitors().due(NOW + HOUR * 99, 9).await.unwrap(), []);
        let active = change(false, NOW + HOUR * 9).await;
        assert_eq!((active.state, active.next_run_at), (MonitorState::Active, Some(NOW + HOUR * 10)));
        assert_eq!((active.spec, active.updated_at), (monitor.spec.clone(), NOW + HOUR * 9));
    }

    async fn team_has_a_limit_and_sees_only_its_own_monitors(db) {
        let (team, other) = (db.team(0).await, db.team(0).await);
        let monitor = created(db, team, |_| ()).await;
        let theirs = created(db, other, |_| ()).await;
        let one_more = NewMonitor { limit: 1, ..new_monitor(MonitorId(db.id()), team, spec(|_| ())) };
        assert_eq!(db.store.monitors().create(one_more.clone()).await.unwrap(), CreateMonitorOutcome::TooMany);
        let of_app = NewMonitor { creator: Principal::Grant(GrantId(db.id())), limit: 9, ..one_more };
        assert_eq!(db.store.monitors().create(of_app).await.unwrap(), CreateMonitorOutcome::AccessEnded);
        let many = NewMonitor { kept_limit: 150, ..new_monitor(MonitorId(db.id()), team, spec(|_| ())) };
        let refused = CreateMonitorOutcome::TooManyRuns { left: 50 };
        assert_eq!(db.store.monitors().create(many).await.unwrap(), refused);
        let more = MonitorChange { keep: Some(151), ..MonitorChange::default() };
        let update = MonitorUpdate { target: target(&monitor), change: more, secrets: None, kept_limit: 150, now: NOW };
        let refused = ChangeOutcome::TooManyRuns { left: 150 };
        assert_eq!(db.store.monitors().change(update).await.unwrap(), refused);
        let page = db.store.monitors().list(team, Environment::Live, None, None, 9).await.unwrap();
        assert_eq!((page.monitors, page.has_more), (vec![monitor.clone()], false));
        for target in [
            MonitorRef { team: other, ..target(&monitor) },
            MonitorRef { environment: Environment::Test, ..target(&monitor) },
            MonitorRef { grant: Some(GrantId(db.id())), ..target(&monitor) },
        ] {
            assert_eq!(db.store.monitors().find(target).await.unwrap(), None);
            assert!(!db.store.monitors().remove(target).await.unwrap());
        }
        assert!(db.store.monitors().remove(target(&monitor)).await.unwrap());
        assert_eq!(db.store.monitors().count(team, Environment::Live).await.unwrap(), 0);
        assert_eq!(find(db, &theirs).await, theirs);
    }

    async fn kept_runs_are_limited_when_several_monitors_are_changed_at_once(db) {
        let team = db.team(0).await;
        let mut monitors = Vec::new();
        for _ in 0..8 {
            monitors.push(created(db, team, |spec| spec.keep = 1).await);
        }
        let changes = monitors.iter().map(|monitor| {
            let change = MonitorChange { keep: Some(100), ..MonitorChange::default() };
            let target = target(monitor);
            db.store.monitors().change(MonitorUpdate { target, change, secrets: None, kept_limit: 107, now: NOW })
        });
        let outcomes: Vec<_> = join_all(changes).await.into_iter().map(Result::unwrap).collect();
        let changed = outcomes.iter().filter(|outcome| matches!(outcome, ChangeOutcome::Changed(_)));
        assert_eq!(changed.count(), 1, "{outcomes:?}");
    }

    async fn monitors_of_a_deleted_team_stop_and_are_erased(db) {
        let team = db.team(9).await;
        let monitor = created(db, team, |_| ()).await;
        run(db, &monitor, NOW, End::Done(0)).await;
        run(db, &monitor, NOW + HOUR, End::Done(0)).await;
        db.store.retention().delete_team(team, None, NOW).await.unwrap().unwrap();
        assert_eq!(db.store.monitors().due(NOW + HOUR * 99, 9).await.unwrap(), []);
        let mut steps = 0;
        while db.store.retention().erase_team(team, NOW, 1).await.unwrap() {
            steps += 1;
            assert!(steps < 100, "the erasure does not end");
        }
        assert_eq!(db.store.monitors().find(target(&monitor)).await.unwrap(), None);
        assert_eq!(runs(db, &monitor).await, []);
    }

    async fn run_of_a_monitor_that_was_paused_before_its_capture_was_created_is_missed(db) {
        let team = db.team(9).await;
        let monitor = created(db, team, |spec| spec.keep = 1).await;
        run(db, &monitor, NOW, End::Done(0)).await;
        let later = NOW + HOUR;
        let interrupted = start(db, &monitor, later).await.run;
        let change = MonitorChange { is_paused: Some(true), ..MonitorChange::default() };
        let update = MonitorUpdate { target: target(&monitor), change, secrets: None, kept_limit: 5000, now: later };
        db.store.monitors().change(update).await.unwrap();
        let over = later + LEASE;
        let leased = db.store.monitors().lease_run(interrupted, over, over + LEASE).await.unwrap();
        assert_eq!(leased, Some(Leased::Missed(interrupted)));
        assert_eq!(outcomes(db, &monitor).await, ["missed"], "the run before is not kept any more");
        let missed = &runs(db, &monitor).await[0];
        assert_eq!((missed.finished_at, missed.grab), (Some(over), None));
        assert_eq!(missed.error.as_ref().unwrap().code, "missed");
        assert_eq!(db.store.monitors().unstarted_runs(over + LEASE, 9).await.unwrap(), []);

        // The same after the team was suspended.
        let other = created(db, team, |_| ()).await;
        let interrupted = start(db, &other, NOW).await.run;
        db.store.accounts().suspend_team(team, "A reason", NOW).await.unwrap();
        let leased = db.store.monitors().lease_run(interrupted, over, over + LEASE).await.unwrap();
        assert_eq!(leased, Some(Leased::Missed(interrupted)));
    }

    async fn run_of_a_paused_monitor_gets_the_grab_that_its_interrupted_start_has_created(db) {
        let team = db.team(9).await;
        let monitor = created(db, team, |_| ()).await;
        let interrupted = start(db, &monitor, NOW).await;
        let key = IdempotencyKey::parse(&Run::idempotency_key(monitor.id, interrupted.due_at)).unwrap();
        let record = NewRecord { key, fingerprint: [7; 32], only_of: None };
        let new = NewGrab { idempotency: Some(record), ..db.new_grab(team, Class::Async) };
        let grab = new.id;
        db.store.grabs().create(new).await.unwrap();
        let change = MonitorChange { is_paused: Some(true), ..MonitorChange::default() };
        let update = MonitorUpdate { target: target(&monitor), change, secrets: None, kept_limit: 5000, now: NOW };
        db.store.monitors().change(update).await.unwrap();
        let over = NOW + LEASE;
        assert_eq!(db.store.monitors().lease_run(interrupted.run, over, over + LEASE).await.unwrap(), None);
        let run = &runs(db, &monitor).await[0];
        assert_eq!((run.outcome, run.grab), (RunOutcome::Running, Some(grab)));
        assert_eq!(db.store.monitors().unstarted_runs(over + LEASE, 9).await.unwrap(), []);
    }

    async fn runs_after_the_first_have_the_delay_of_the_monitor(db) {
        let new = NewMonitor { phase: Phase(1000), ..new_monitor(MonitorId(db.id()), db.team(9).await, spec(|_| ())) };
        let CreateMonitorOutcome::Created(monitor) = db.store.monitors().create(new).await.unwrap() else {
            panic!("not created")
        };
        let delay = Duration::from_secs(300);
        assert_eq!(monitor.next_run_at, Some(NOW), "the first one is at once");
        run(db, &monitor, NOW, End::Done(0)).await;
        assert_eq!(find(db, &monitor).await.next_run_at, Some(NOW + HOUR + delay));
        let second = run(db, &monitor, NOW + HOUR + delay, End::Done(0)).await;
        assert_eq!((second.run.due_at, second.run.outcome), (NOW + HOUR + delay, RunOutcome::Same));
        assert_eq!(find(db, &monitor).await.next_run_at, Some(NOW + HOUR * 2 + delay), "the delay does not grow");
        let switch = async |is_paused| {
            let change = MonitorChange { is_paused: Some(is_paused), ..MonitorChange::default() };
            let update = MonitorUpdate { target: target(&monitor), change, secrets: None, kept_limit: 5000, now: NOW };
            db.store.monitors().change(update).await.unwrap()
        };
        switch(true).await;
        switch(false).await;
        assert_eq!(find(db, &monitor).await.next_run_at, Some(NOW + HOUR + delay));
    }

    async fn monitors_of_a_suspended_team_make_no_runs(db) {
        let team = db.team(9).await;
        let monitor = created(db, team, |_| ()).await;
        db.store.accounts().suspend_team(team, "A reason", NOW).await.unwrap();
        let claimed = db.store.monitors().claim(monitor.id, NOW, NOW + LEASE).await.unwrap();
        assert_eq!(claimed, Some(Claimed::NoAccess));
        assert_eq!((runs(db, &monitor).await, find(db, &monitor).await.next_run_at), (vec![], Some(NOW + HOUR)));
    }
}
