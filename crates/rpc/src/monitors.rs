//! `grabd.v1.MonitorService`.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use grabd_domain::Fault;
use grabd_domain::capture::{CaptureRequest, Rectangle};
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::faults::Field;
use grabd_domain::ids::MonitorId;
use grabd_domain::monitor::{
    Compare, CompareRequest, ElementChange, ImageCompare, ImageCompareRequest, Monitor, MonitorBatchRequest,
    MonitorRequest, MonitorSpec, Notify, NotifyRequest, Quiet, QuietRequest, Run, RunError, Schedule,
    TextCompareRequest,
};
use grabd_engine::Core;
use grabd_engine::monitors::{self, FeedAddresses, ListRequest};
use grabd_proto::v1::monitor_service_server::MonitorService;
use grabd_proto::{options, v1};
use tonic::{Request, Response, Status};

use crate::convert::{timestamp, unparsed_fields};
use crate::gate;
use crate::grabs::{caller, may_read};
use crate::numbers::to_i32;
use crate::status::to_status;

/// The service over a core.
pub(crate) struct Monitors(pub(crate) Core);

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl MonitorService for Monitors {
    async fn create_monitor(&self, request: Request<v1::CreateMonitorRequest>) -> RpcResult<v1::CreateMonitorResponse> {
        let caller = caller(&request)?;
        let settings = settings(request.into_inner().monitor);
        let created = monitors::create(&self.0, caller, &settings).await.map_err(to_status)?;
        Ok(Response::new(v1::CreateMonitorResponse { monitor: Some(monitor(&created)) }))
    }

    async fn batch_create_monitors(
        &self,
        request: Request<v1::BatchCreateMonitorsRequest>,
    ) -> RpcResult<v1::BatchCreateMonitorsResponse> {
        let caller = caller(&request)?;
        let v1::BatchCreateMonitorsRequest { urls, monitor: given } = request.into_inner();
        let asked = MonitorBatchRequest { urls, monitor: settings(given) };
        let created = monitors::create_batch(&self.0, caller, &asked).await.map_err(to_status)?;
        let monitors = created.monitors.iter().map(monitor).collect();
        let mut response = Response::new(v1::BatchCreateMonitorsResponse { monitors });
        gate::add_limit(created.decision, response.metadata_mut());
        Ok(response)
    }

    async fn get_monitor(&self, request: Request<v1::GetMonitorRequest>) -> RpcResult<v1::GetMonitorResponse> {
        let caller = caller(&request)?;
        let id = monitor_id(&request.get_ref().id)?;
        let found = monitors::get(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::GetMonitorResponse { monitor: Some(monitor(&found)) }))
    }

    async fn list_monitors(&self, request: Request<v1::ListMonitorsRequest>) -> RpcResult<v1::ListMonitorsResponse> {
        let caller = caller(&request)?;
        let v1::ListMonitorsRequest { limit, starting_after, unparsed } = request.into_inner();
        let query = list_request(limit, starting_after, unparsed);
        let page = monitors::list(&self.0, caller, &query).await.map_err(to_status)?;
        let monitors = page.monitors.iter().map(monitor).collect();
        Ok(Response::new(v1::ListMonitorsResponse { monitors, has_more: page.has_more }))
    }

    async fn update_monitor(&self, request: Request<v1::UpdateMonitorRequest>) -> RpcResult<v1::UpdateMonitorResponse> {
        let (caller, may_read) = (caller(&request)?, may_read(&request));
        let v1::UpdateMonitorRequest { id, monitor: changes } = request.into_inner();
        let id = monitor_id(&id)?;
        check_visible(&self.0, caller, may_read, id).await?;
        let changed = monitors::change(&self.0, caller, id, &settings(changes)).await.map_err(to_status)?;
        Ok(Response::new(v1::UpdateMonitorResponse { monitor: Some(monitor(&changed)) }))
    }

    async fn delete_monitor(&self, request: Request<v1::DeleteMonitorRequest>) -> RpcResult<v1::DeleteMonitorResponse> {
        let (caller, may_read) = (caller(&request)?, may_read(&request));
        let id = monitor_id(&request.get_ref().id)?;
        check_visible(&self.0, caller, may_read, id).await?;
        monitors::remove(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::DeleteMonitorResponse {}))
    }

    async fn list_monitor_runs(
        &self,
        request: Request<v1::ListMonitorRunsRequest>,
    ) -> RpcResult<v1::ListMonitorRunsResponse> {
        let caller = caller(&request)?;
        let v1::ListMonitorRunsRequest { id, limit, starting_after, unparsed } = request.into_inner();
        let id = monitor_id(&id)?;
        let query = list_request(limit, starting_after, unparsed);
        let page = monitors::list_runs(&self.0, caller, id, &query).await.map_err(to_status)?;
        let runs = page.runs.iter().map(run).collect();
        Ok(Response::new(v1::ListMonitorRunsResponse { runs, has_more: page.has_more }))
    }

    type GetMonitorHistoryStream = Pin<Box<dyn Stream<Item = Result<v1::GetMonitorHistoryResponse, Status>> + Send>>;

    async fn get_monitor_history(
        &self,
        request: Request<v1::GetMonitorHistoryRequest>,
    ) -> Result<Response<Self::GetMonitorHistoryStream>, Status> {
        let caller = caller(&request)?;
        let id = monitor_id(&request.get_ref().id)?;
        let archive = monitors::history(&self.0, caller, id).await.map_err(to_status)?;
        let parts = archive.map(|part| match part {
            Ok(content) => Ok(v1::GetMonitorHistoryResponse { content: content.to_vec() }),
            Err(_) => Err(Status::unavailable("The archive is incomplete.")),
        });
        Ok(Response::new(Box::pin(parts)))
    }

    async fn create_monitor_feed(
        &self,
        request: Request<v1::CreateMonitorFeedRequest>,
    ) -> Result<Response<v1::CreateMonitorFeedResponse>, Status> {
        let (caller, may_read) = (caller(&request)?, may_read(&request));
        let id = monitor_id(&request.get_ref().id)?;
        check_visible(&self.0, caller, may_read, id).await?;
        let FeedAddresses { feed_url, badge_url } =
            monitors::open_feed(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::CreateMonitorFeedResponse { feed_url, badge_url }))
    }

    async fn delete_monitor_feed(
        &self,
        request: Request<v1::DeleteMonitorFeedRequest>,
    ) -> Result<Response<v1::DeleteMonitorFeedResponse>, Status> {
        let (caller, may_read) = (caller(&request)?, may_read(&request));
        let id = monitor_id(&request.get_ref().id)?;
        check_visible(&self.0, caller, may_read, id).await?;
        monitors::close_feed(&self.0, caller, id).await.map_err(to_status)?;
        Ok(Response::new(v1::DeleteMonitorFeedResponse {}))
    }

    async fn accept_baseline(
        &self,
        request: Request<v1::AcceptBaselineRequest>,
    ) -> RpcResult<v1::AcceptBaselineResponse> {
        let (caller, may_read) = (caller(&request)?, may_read(&request));
        let v1::AcceptBaselineRequest { id, grab_id, unparsed } = request.into_inner();
        let id = monitor_id(&id)?;
        check_visible(&self.0, caller, may_read, id).await?;
        if let Some(v1::Unparsed { field, seen }) = unparsed.first() {
            // An unknown monitor is reported before a malformed request.
            monitors::get(&self.0, caller, id).await.map_err(to_status)?;
            let (name, allowed) = match field.as_str() {
                "body" => ("body", "a JSON object without other members than `grab_id`, or left out"),
                _ => ("grab_id", "the id of a grab"),
            };
            return Err(to_status(Fault::BadRequest(Field::new(name, seen, allowed))));
        }
        let accepted = monitors::accept(&self.0, caller, id, grab_id.as_deref()).await.map_err(to_status)?;
        Ok(Response::new(v1::AcceptBaselineResponse { monitor: Some(monitor(&accepted)) }))
    }
}

/// Malformed ids are reported as not found.
fn monitor_id(text: &str) -> Result<MonitorId, Status> {
    text.parse().map_err(|_| not_found())
}

/// A key that may not read sees only the monitors that it has created, also in responses to changes. Others are reported as not
/// found.
async fn check_visible(core: &Core, caller: Caller, may_read: bool, id: MonitorId) -> Result<(), Status> {
    if may_read || monitors::get(core, caller, id).await.map_err(to_status)?.creator == caller.principal {
        return Ok(());
    }
    Err(not_found())
}

fn not_found() -> Status {
    to_status(Fault::NotFound { what: "monitor" })
}

fn list_request(limit: Option<i32>, starting_after: Option<String>, unparsed: Vec<v1::Unparsed>) -> ListRequest {
    ListRequest { limit: limit.map(i64::from), starting_after, unparsed: unparsed_fields(unparsed) }
}

fn settings(settings: Option<v1::MonitorSettings>) -> MonitorRequest {
    let v1::MonitorSettings {
        name,
        capture,
        every,
        cron,
        time_zone,
        compare,
        alert_after,
        notify,
        keep,
        quiet,
        paused,
        capture_unparsed,
        unparsed,
        capture_unknown,
    } = settings.unwrap_or_default();
    MonitorRequest {
        name,
        capture: capture
            .map(|capture| CaptureRequest { unknown: capture_unknown, ..options::decode(capture, capture_unparsed) }),
        every,
        cron,
        time_zone,
        compare: compare.map(|v1::MonitorCompare { image, status, baseline, text, elements }| CompareRequest {
            image: image.map(image_request),
            status,
            elements,
            text: text.map(|v1::MonitorTextCompare { ignore_patterns }| TextCompareRequest { ignore_patterns }),
            baseline,
        }),
        alert_after: alert_after.map(i64::from),
        notify: notify.map(|v1::MonitorNotify { webhook, email }| NotifyRequest { webhook, email }),
        keep: keep.map(i64::from),
        quiet: quiet.map(|v1::MonitorQuiet { from, to, time_zone }| QuietRequest { from, to, time_zone }),
        paused,
        unparsed: unparsed_fields(unparsed),
    }
}

fn image_request(image: v1::MonitorImageCompare) -> ImageCompareRequest {
    let v1::MonitorImageCompare { threshold_ratio, ignore, ignore_areas, min_region_px } = image;
    let area = |v1::MonitorArea { x, y, width, height }: v1::MonitorArea| Rectangle {
        x: x.into(),
        y: y.into(),
        width: width.into(),
        height: height.into(),
    };
    ImageCompareRequest {
        threshold_ratio,
        ignore,
        ignore_areas: ignore_areas.into_iter().map(area).collect(),
        min_region_px: min_region_px.map(i64::from),
    }
}

fn monitor(monitor: &Monitor) -> v1::Monitor {
    let Monitor {
        id,
        team: _,
        environment,
        creator: _,
        spec: MonitorSpec { name, capture, schedule, compare, alert_after, notify, keep, quiet },
        state,
        progress: _,
        created_at,
        updated_at,
        next_run_at,
        baseline,
        has_feed,
        last_run,
    } = monitor;
    let (every, cron, time_zone) = match schedule {
        Schedule::Every(every) => (Some(every.to_string()), None, None),
        Schedule::Cron(local) => (None, Some(local.cron().to_string()), Some(local.zone_name().to_owned())),
    };
    let Compare { image, status, text, elements, baseline: mode } = compare;
    let Notify { webhook, email } = *notify;
    // The values of secret options are not there, and all others fit the message, in which they came.
    let (capture, _) = options::encode(&capture.without_secrets().to_minimal_request());
    v1::Monitor {
        id: id.to_string(),
        live: *environment == Environment::Live,
        name: name.clone(),
        capture: Some(capture),
        every,
        cron,
        time_zone,
        compare: Some(v1::MonitorCompare {
            image: image.as_ref().map(image_compare),
            status: Some(*status),
            baseline: Some(mode.as_str().to_owned()),
            text: text.as_ref().map(|text| v1::MonitorTextCompare { ignore_patterns: text.ignore_patterns.clone() }),
            elements: Some(*elements),
        }),
        alert_after: to_i32(*alert_after),
        notify: Some(v1::MonitorNotify { webhook: Some(webhook), email: Some(email) }),
        keep: to_i32(*keep),
        state: state.as_str().to_owned(),
        created_at: Some(timestamp(*created_at)),
        updated_at: Some(timestamp(*updated_at)),
        next_run_at: next_run_at.map(timestamp),
        baseline_grab_id: baseline.map(|grab| grab.to_string()),
        last_run: last_run.as_ref().map(run),
        quiet: quiet.as_ref().map(quiet_hours),
        has_feed: *has_feed,
    }
}

fn image_compare(image: &ImageCompare) -> v1::MonitorImageCompare {
    let ImageCompare { threshold_ppm: _, ignore, ignore_areas, min_region_px } = image;
    // Requests have smaller numbers.
    let side = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
    let area = |Rectangle { x, y, width, height }: &Rectangle| v1::MonitorArea {
        x: side(*x),
        y: side(*y),
        width: side(*width),
        height: side(*height),
    };
    v1::MonitorImageCompare {
        threshold_ratio: Some(image.threshold_ratio()),
        ignore: ignore.clone(),
        ignore_areas: ignore_areas.iter().map(area).collect(),
        min_region_px: Some(to_i32(*min_region_px)),
    }
}

fn quiet_hours(quiet: &Quiet) -> v1::MonitorQuiet {
    v1::MonitorQuiet { from: Some(quiet.from()), to: Some(quiet.to()), time_zone: Some(quiet.zone_name().to_owned()) }
}

fn run(run: &Run) -> v1::MonitorRun {
    let Run {
        id,
        monitor: _,
        due_at,
        outcome,
        grab,
        compared_to,
        difference_ppm: _,
        changes,
        text_changes,
        element_changes,
        is_alerted,
        finished_at,
        error,
    } = run;
    v1::MonitorRun {
        id: id.to_string(),
        due_at: Some(timestamp(*due_at)),
        outcome: outcome.as_str().to_owned(),
        grab_id: grab.map(|grab| grab.to_string()),
        compared_to: compared_to.map(|grab| grab.to_string()),
        difference_ratio: run.difference_ratio(),
        what_changed: changes.iter().map(|change| change.as_str().to_owned()).collect(),
        alerted: *is_alerted,
        finished_at: finished_at.map(timestamp),
        error: error
            .as_ref()
            .map(|RunError { code, message }| v1::MonitorRunError { code: code.clone(), message: message.clone() }),
        text_changes: text_changes
            .iter()
            .map(|change| v1::MonitorTextChange { before: change.before.clone(), after: change.after.clone() })
            .collect(),
        element_changes: element_changes.iter().map(element_change).collect(),
    }
}

fn element_change(change: &ElementChange) -> v1::MonitorElementChange {
    let ElementChange { kind, role, name, before, after } = change;
    v1::MonitorElementChange {
        change: kind.as_str().to_owned(),
        role: role.clone(),
        name: name.clone(),
        before: before.clone(),
        after: after.clone(),
    }
}
