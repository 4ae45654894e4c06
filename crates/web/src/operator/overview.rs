//! `/operator`: the state of the service.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, FailureReason};
use grabd_engine::operator::{
    self, AttachedRenderer, DiskSpace, LATE_AFTER, LATENCY_CAPTURES, Latency, Node, OutcomeCount, Overview, Queue,
    TeamQueue,
};
use http::StatusCode;

use super::hours::Hours;
use super::navigation::PATH;
use super::view::{renderer_name, seconds, share, size, span};
use crate::extract::OperatorContext;
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

#[derive(Template)]
#[template(path = "operator.html")]
struct OverviewPage {
    layout: Layout,
    /// Alarms, one sentence each.
    alarms: Vec<String>,
    now: Moment,
    version: &'static str,
    started: Moment,
    up: String,
    database: String,
    renderers: Vec<Renderer>,
    nodes: Vec<NodeRow>,
    slots: SlotTile,
    waiting: String,
    waiting_sync: String,
    waiting_async: String,
    rendering: String,
    oldest: Option<String>,
    teams: Vec<Team>,
    done: String,
    failed: String,
    failed_share: String,
    latency: Option<LatencyTile>,
    disk: DiskTile,
    hours: Option<Hours>,
    outcomes: Vec<Outcome>,
    refused: Vec<(&'static str, String)>,
    rate_limited: String,
    given_back: String,
    messages_waiting: String,
    messages_retried: String,
    endpoints_failing: String,
    endpoints_disabled: String,
}

/// A renderer in the list.
struct Renderer {
    name: String,
    is_late: bool,
    browser: String,
    slots: usize,
    busy: usize,
    replaced: String,
    memory: String,
    is_jailed: bool,
    jail: String,
    is_tested: bool,
    self_test: String,
    attached: Moment,
    last_report: String,
}

/// The tile with the slots of the whole service.
struct SlotTile {
    busy: String,
    total: String,
    /// Where the slots are.
    note: String,
}

/// The tile with the latency of captures.
struct LatencyTile {
    p50: String,
    p95: String,
    /// Of which captures.
    note: String,
}

/// The tile with the disk of the images.
struct DiskTile {
    used: String,
    note: String,
    images: String,
}

/// A process of the cluster.
struct NodeRow {
    name: String,
    role: String,
    is_alive: bool,
    slots: u32,
    version: String,
    address: String,
    last_heartbeat: String,
}

/// A team with its jobs in the queue.
struct Team {
    path: String,
    name: String,
    waiting: String,
    rendering: String,
    asynchronous: String,
    limit: String,
    is_full: bool,
}

/// The number of grabs with one outcome.
struct Outcome {
    /// The label in the metrics.
    result: &'static str,
    live: String,
    test: String,
}

/// Shows the page.
pub(super) async fn show(State(web): State<Arc<Web>>, at: OperatorContext) -> Result<Response, Problem> {
    let overview = operator::overview(&web.core, &at.operator).await?;
    let template = OverviewPage::of(overview, at.layout(&web, PATH));
    Ok(page(StatusCode::OK, &template))
}

impl OverviewPage {
    fn of(overview: Overview, layout: Layout) -> Self {
        let Overview {
            version,
            started_at,
            now,
            renderers,
            nodes,
            queue,
            async_queue,
            ended,
            latency,
            disk,
            image_bytes,
            refused,
            rate_limited,
            given_back,
            undelivered,
            database,
            database_bytes,
        } = overview;
        let renderers: Vec<Renderer> = renderers.into_iter().map(|attached| Renderer::of(attached, now)).collect();
        let renders_elsewhere = nodes.iter().any(|node| node.is_alive && node.slots > 0);
        let Queue { classes, oldest, teams } = queue;
        let waiting = |class| classes.iter().find(|of| of.class == class).map_or(0, |of| of.waiting);
        let (waiting_sync, waiting_async) = (waiting(Class::Sync), waiting(Class::Async));
        let live = |is_done: bool| {
            let of = ended.iter().filter(|of| of.environment == Environment::Live && of.failure.is_none() == is_done);
            of.map(|of| of.grabs).sum::<u64>()
        };
        let (done, failed) = (live(true), live(false));
        let rendering = classes.iter().map(|of| of.rendering).sum();
        Self {
            layout,
            alarms: alarms(&renderers, renders_elsewhere, undelivered.failing + undelivered.disabled),
            now: now.into(),
            version,
            started: started_at.into(),
            up: span(now.since(started_at)),
            database: format!("{database}, {}", size(database_bytes)),
            slots: match nodes.is_empty() {
                true => SlotTile::of_renderers(&renderers),
                false => SlotTile::of_cluster(&nodes, rendering),
            },
            renderers,
            nodes: nodes.into_iter().map(|node| NodeRow::of(node, now)).collect(),
            waiting: grouped(waiting_sync + waiting_async),
            waiting_sync: grouped(waiting_sync),
            waiting_async: grouped(waiting_async),
            rendering: grouped(rendering),
            oldest: oldest.map(|since| span(now.since(since))),
            teams: teams.into_iter().map(|team| Team::of(team, async_queue)).collect(),
            done: grouped(done),
            failed: grouped(failed),
            failed_share: share(failed, done + failed),
            latency: latency.map(LatencyTile::of),
            disk: DiskTile::of(disk, image_bytes),
            hours: Hours::of(&ended, now),
            outcomes: outcomes(&ended),
            refused: refused.into_iter().map(|(reason, count)| (reason, grouped(count))).collect(),
            rate_limited: grouped(rate_limited),
            given_back: grouped(given_back),
            messages_waiting: grouped(undelivered.waiting),
            messages_retried: grouped(undelivered.retried),
            endpoints_failing: grouped(undelivered.failing),
            endpoints_disabled: grouped(undelivered.disabled),
        }
    }
}

impl SlotTile {
    fn of_renderers(renderers: &[Renderer]) -> Self {
        let busy: usize = renderers.iter().map(|renderer| renderer.busy).sum();
        let total: usize = renderers.iter().map(|renderer| renderer.slots).sum();
        let note = match renderers.len() {
            1 => "on one renderer".to_owned(),
            more => format!("on {more} renderers"),
        };
        Self { busy: busy.to_string(), total: total.to_string(), note }
    }

    /// Cores know the renderers of a cluster, and write their shares of the slots into the table of processes.
    fn of_cluster(nodes: &[Node], rendering: u64) -> Self {
        let alive = || nodes.iter().filter(|node| node.is_alive && node.slots > 0);
        let total: u64 = alive().map(|node| u64::from(node.slots)).sum();
        let note = match alive().count() {
            1 => "shared by one core".to_owned(),
            cores => format!("shared by {cores} cores"),
        };
        // Shares are rounded, and the figures are up to two seconds apart.
        Self { busy: grouped(rendering), total: grouped(total.max(rendering)), note }
    }
}

impl LatencyTile {
    fn of(Latency { p50, p95, captures }: Latency) -> Self {
        let captures = u64::try_from(captures).unwrap_or(u64::MAX);
        let note = match captures {
            1 => "one live capture".to_owned(),
            all if all < u64::from(LATENCY_CAPTURES) => format!("{} live captures", grouped(all)),
            latest => format!("the latest {} live captures", grouped(latest)),
        };
        Self { p50: seconds(p50), p95: seconds(p95), note }
    }
}

impl DiskTile {
    fn of(disk: Option<DiskSpace>, image_bytes: u64) -> Self {
        let images = size(image_bytes);
        let Some(DiskSpace { free_bytes, total_bytes }) = disk.filter(|disk| disk.total_bytes > 0) else {
            return Self { used: "not measured".to_owned(), note: "measured every 10 seconds".to_owned(), images };
        };
        let used = u128::from(total_bytes.saturating_sub(free_bytes)) * 100 / u128::from(total_bytes);
        Self {
            used: format!("{used} % used"),
            note: format!("{} free of {}", size(free_bytes), size(total_bytes)),
            images,
        }
    }
}

impl NodeRow {
    fn of(node: Node, now: Timestamp) -> Self {
        let Node { id, role, started_at: _, heartbeat_at, version, address, slots, load: _, is_alive } = node;
        let last_heartbeat = format!("{} ago", span(now.since(heartbeat_at)));
        Self { name: id.to_string(), role, is_alive, slots, version, address, last_heartbeat }
    }
}

impl Renderer {
    fn of(attached: AttachedRenderer, now: Timestamp) -> Self {
        let AttachedRenderer { session, attached_at, slots, busy, heartbeat } = attached;
        let (status, reported_at) = heartbeat.map_or_else(|| (None, attached_at), |(status, at)| (Some(status), at));
        let silence = now.since(reported_at);
        let is_late = silence > LATE_AFTER;
        let has_reported = status.is_some();
        let status = status.unwrap_or_default();
        let browser = match status.browser.is_empty() {
            true if has_reported => "being replaced".to_owned(),
            true => "unknown".to_owned(),
            false => status.browser,
        };
        let replaced: u64 = status.restarts.values().sum();
        let reasons: Vec<String> = status.restarts.iter().map(|(why, count)| format!("{why} {count}")).collect();
        Self {
            name: renderer_name(session),
            is_late,
            browser,
            slots,
            busy,
            replaced: match reasons.is_empty() {
                true => grouped(replaced),
                false => format!("{} ({})", grouped(replaced), reasons.join(", ")),
            },
            memory: size(status.memory_bytes),
            is_jailed: status.is_jailed,
            jail: status.jail,
            is_tested: status.is_tested,
            self_test: status.self_test,
            attached: attached_at.into(),
            last_report: match silence < Duration::from_secs(1) {
                true => "just now".to_owned(),
                false => format!("{} ago", span(silence)),
            },
        }
    }
}

impl Team {
    fn of(team: TeamQueue, async_queue: u32) -> Self {
        let TeamQueue { team, name, waiting, rendering, asynchronous, limit } = team;
        let limit = u64::from(limit.unwrap_or(async_queue));
        Self {
            path: format!("/operator/teams/{team}"),
            name,
            waiting: grouped(waiting),
            rendering: grouped(rendering),
            asynchronous: grouped(asynchronous),
            limit: grouped(limit),
            is_full: asynchronous >= limit,
        }
    }
}

/// All outcomes, including those with a count of zero.
fn outcomes(ended: &[OutcomeCount]) -> Vec<Outcome> {
    let reasons = [
        FailureReason::RenderBlocked,
        FailureReason::RenderFailed,
        FailureReason::SsrfDetected,
        FailureReason::InternalError,
    ];
    let count = |failure, environment| {
        let of = ended.iter().filter(|of| of.failure == failure && of.environment == environment);
        grouped(of.map(|of| of.grabs).sum())
    };
    let outcome = |failure: Option<FailureReason>| Outcome {
        result: failure.map_or("done", |reason| reason.code().as_str()),
        live: count(failure, Environment::Live),
        test: count(failure, Environment::Test),
    };
    std::iter::once(None).chain(reasons.map(Some)).map(outcome).collect()
}

fn alarms(renderers: &[Renderer], renders_elsewhere: bool, endpoints: u64) -> Vec<String> {
    let mut alarms = Vec::new();
    if renderers.is_empty() && !renders_elsewhere {
        alarms.push("No renderer is connected, so captures are not processed.".to_owned());
    }
    for renderer in renderers {
        if renderer.is_late {
            alarms.push(format!("The renderer {} is not responding.", renderer.name));
        }
    }
    if endpoints > 0 {
        alarms.push(match endpoints {
            1 => "One webhook endpoint is failing.".to_owned(),
            more => format!("{} webhook endpoints are failing.", grouped(more)),
        });
    }
    alarms
}

#[cfg(test)]
mod tests {
    use grabd_domain::ids::SessionId;
    use grabd_domain::render::RendererStatus;

    use super::*;

    /// A renderer whose last report is this many milliseconds old.
    fn renderer(silence_ms: i64) -> Renderer {
        let now = Timestamp::from_ms(1_800_000_000_000);
        let restarts = [("memory".to_owned(), 3), ("grabs".to_owned(), 2)].into_iter().collect();
        let status = RendererStatus { browser: "Chromium 1".to_owned(), restarts, ..RendererStatus::default() };
        let heartbeat = Some((status, Timestamp::from_ms(now.as_ms() - silence_ms)));
        let session: SessionId = "01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap();
        Renderer::of(AttachedRenderer { session, attached_at: now, slots: 4, busy: 1, heartbeat }, now)
    }

    #[test]
    fn slots_of_a_cluster_are_those_of_its_living_cores() {
        let at = Timestamp::from_ms(0);
        let node = |role: &str, slots, is_alive| Node {
            id: "01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap(),
            role: role.to_owned(),
            started_at: at,
            heartbeat_at: at,
            version: String::new(),
            address: String::new(),
            slots,
            load: Default::default(),
            is_alive,
        };
        let nodes = [node("core", 2, true), node("core", 2, true), node("core", 2, false), node("edge", 0, true)];
        let SlotTile { busy, total, note } = SlotTile::of_cluster(&nodes, 3);
        assert_eq!((busy.as_str(), total.as_str(), note.as_str()), ("3", "4", "shared by 2 cores"));
    }

    #[test]
    fn late_and_missing_renderers_and_failing_endpoints_raise_alarms() {
        let (live, late) = (renderer(14_999), renderer(15_001));
        assert_eq!(
            (live.is_late, live.last_report.as_str(), live.replaced.as_str()),
            (false, "14 s ago", "5 (grabs 2, memory 3)")
        );
        assert!(late.is_late);
        assert_eq!(alarms(&[live], false, 0), Vec::<String>::new());
        assert_eq!(alarms(&[late], false, 0), ["The renderer 01993e1c is not responding."]);
        assert_eq!(alarms(&[], false, 0), ["No renderer is connected, so captures are not processed."]);
        assert_eq!(alarms(&[], true, 0), Vec::<String>::new(), "other processes of the cluster render");
        let one = "One webhook endpoint is failing.";
        assert_eq!(alarms(&[renderer(0)], false, 1), [one]);
        assert_eq!(alarms(&[renderer(0)], false, 1200), ["1,200 webhook endpoints are failing."]);
    }

    #[test]
    fn tiles_of_latency_and_disk_have_figures_with_units() {
        let latency =
            |captures| Latency { p50: Duration::from_millis(840), p95: Duration::from_millis(4_260), captures };
        let LatencyTile { p50, p95, note } = LatencyTile::of(latency(1200));
        assert_eq!((p50.as_str(), p95.as_str(), note.as_str()), ("840 ms", "4.2 s", "1,200 live captures"));
        assert_eq!(LatencyTile::of(latency(1)).note, "one live capture");
        assert_eq!(LatencyTile::of(latency(5000)).note, "the latest 5,000 live captures");
        let disk = DiskSpace { free_bytes: 59_000_000_000, total_bytes: 100_000_000_000 };
        let DiskTile { used, note, images } = DiskTile::of(Some(disk), 1_540_000);
        assert_eq!((used.as_str(), note.as_str(), images.as_str()), ("41 % used", "59 GB free of 100 GB", "1.5 MB"));
        assert_eq!(DiskTile::of(None, 0).used, "not measured");
    }
}
