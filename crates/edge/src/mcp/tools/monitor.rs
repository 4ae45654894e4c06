//! `monitor`: creates a monitor, lists monitors, or lists the runs of one.

use grabd_api::{MonitorList, MonitorRunList};
use grabd_proto::v1::monitor_service_client::MonitorServiceClient;
use grabd_proto::v1::{CreateMonitorRequest, ListMonitorRunsRequest, ListMonitorsRequest, MonitorSettings};
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::message::shorten;
use super::arguments::argument_error;
use super::context::ToolContext;
use super::output::{ToolOutput, ToolResult};
use crate::rest::call::{self, CoreResponse};
use crate::rest::fields::Fields;
use crate::rest::{json, monitors};

/// What the tool does.
#[derive(Debug)]
pub(in super::super) enum MonitorArgs {
    Create(Box<MonitorSettings>),
    List,
    /// Those of the monitor with this id.
    Runs(String),
}

/// Reads the arguments.
///
/// # Errors
/// With a message for an argument that is missing, or not forwarded to the core.
pub(super) fn read(fields: &mut Fields<'_>) -> Result<MonitorArgs, String> {
    let task = fields.read("do", json::string);
    match task.as_deref() {
        Some("create") => {
            let object = |value: &RawValue| value.get().starts_with('{').then(|| value.get().to_owned());
            let body = fields.read("monitor", object);
            let body =
                body.ok_or_else(|| argument_error(fields, "monitor", "an object, as POST /v1/monitors takes it"))?;
            Ok(MonitorArgs::Create(Box::new(monitors::settings(body.as_bytes()))))
        }
        Some("list") => Ok(MonitorArgs::List),
        Some("runs") => {
            let id = fields.read("id", json::string);
            id.map(MonitorArgs::Runs).ok_or_else(|| argument_error(fields, "id", "the id of a monitor, as text"))
        }
        Some(other) => Err(format!("`do` must be create, list or runs; got {:?}.", shorten(other))),
        None => Err(argument_error(fields, "do", "create, list or runs")),
    }
}

pub(super) async fn run(context: &ToolContext, args: MonitorArgs) -> ToolResult {
    match args {
        MonitorArgs::Create(settings) => create(context, *settings).await,
        MonitorArgs::List => list(context).await,
        MonitorArgs::Runs(id) => runs(context, id).await,
    }
}

async fn create(context: &ToolContext, settings: MonitorSettings) -> ToolResult {
    let mut core = MonitorServiceClient::new(context.mcp.transport.clone());
    let request = CreateMonitorRequest { monitor: Some(settings) };
    let sent = call::request(&context.headers, request, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.create_monitor(sent)).await?;
    let shown = message.monitor.as_ref().and_then(monitors::shown_monitor);
    output(context, shown.as_ref(), metadata)
}

async fn list(context: &ToolContext) -> ToolResult {
    let mut core = MonitorServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, ListMonitorsRequest::default(), call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.list_monitors(sent)).await?;
    let data = message.monitors.iter().map(monitors::shown_monitor).collect::<Option<Vec<_>>>();
    let shown = data.map(|data| MonitorList { data, has_more: message.has_more });
    output(context, shown.as_ref(), metadata)
}

async fn runs(context: &ToolContext, id: String) -> ToolResult {
    let mut core = MonitorServiceClient::new(context.mcp.transport.clone());
    let request = ListMonitorRunsRequest { id, ..ListMonitorRunsRequest::default() };
    let sent = call::request(&context.headers, request, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.list_monitor_runs(sent)).await?;
    let data = message.runs.iter().map(monitors::shown_run).collect::<Option<Vec<_>>>();
    let shown = data.map(|data| MonitorRunList { data, has_more: message.has_more });
    output(context, shown.as_ref(), metadata)
}

/// The output with what the core has returned. `None`: that was incomplete.
fn output<T: Serialize>(context: &ToolContext, shown: Option<&T>, metadata: http::HeaderMap) -> ToolResult {
    let shown = shown.ok_or_else(|| context.internal("the core returned an incomplete monitor"))?;
    let structured = serde_json::to_value(shown).map_err(|_| context.internal("a monitor cannot be serialized"))?;
    Ok(ToolOutput { structured, blocks: Vec::new(), metadata })
}
