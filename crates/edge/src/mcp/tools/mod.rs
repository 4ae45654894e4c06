//! The tools. `tools.json` has their descriptions and schemas and is served unchanged.

mod arguments;
mod capture_site;
mod context;
mod create_grab;
mod get_grab;
mod get_pricing;
mod get_usage;
mod grab_output;
mod hints;
mod list;
mod list_grabs;
mod monitor;
mod option_schema;
mod output;
mod read_files;

use grabd_proto::v1::{ErrorCode, GetPricingRequest, ListGrabsRequest};
use rmcp::model::Tool;
use serde_json::Value;

pub(super) use context::ToolContext;
pub(super) use list::Tools;
pub(super) use output::{ToolFuture, ToolResult, error_result, success_result};

use super::message::shorten;
use super::progress::Progress;
use crate::rest::error::ApiError;
use crate::rest::fields::Fields;
use crate::rest::json::Members;

type ArgsParser = fn(&mut Fields<'_>) -> ToolArgs;

/// The argument parsers of the tools.
const ARGS_PARSERS: [(&str, ArgsParser); 7] = [
    ("create_grab", |fields| {
        create_grab::read(fields).map_or_else(ToolArgs::Invalid, |args| ToolArgs::CreateGrab(Box::new(args)))
    }),
    ("get_grab", |fields| {
        get_grab::read(fields).map_or_else(ToolArgs::Invalid, |args| ToolArgs::GetGrab(Box::new(args)))
    }),
    ("list_grabs", |fields| ToolArgs::ListGrabs(list_grabs::read(fields))),
    ("get_usage", |_| ToolArgs::GetUsage),
    ("get_pricing", |fields| ToolArgs::GetPricing(get_pricing::read(fields))),
    ("capture_site", |fields| capture_site::read(fields).map_or_else(ToolArgs::Invalid, ToolArgs::CaptureSite)),
    ("monitor", |fields| {
        monitor::read(fields).map_or_else(ToolArgs::Invalid, |args| ToolArgs::Monitor(Box::new(args)))
    }),
];

/// A tool and its argument parser.
pub(super) struct ToolEntry<'a> {
    tool: &'a Tool,
    parser: ArgsParser,
}

/// The tool with a name.
pub(super) fn find<'a>(tools: &'a Tools, name: &str) -> Option<ToolEntry<'a>> {
    let tool = tools.get(name)?;
    Some(ToolEntry { tool, parser: ARGS_PARSERS.iter().find(|(known, _)| *known == name)?.1 })
}

impl ToolEntry<'_> {
    /// Parses arguments. Unknown names are rejected here; the core validates the values.
    pub(super) fn parse_args(&self, arguments: Members<'_>) -> ToolArgs {
        let properties = self.tool.input_schema.get("properties").and_then(Value::as_object);
        let known: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let mut fields = Fields::from(arguments);
        if let Some(name) = fields.unknown_member(&known) {
            let name = shorten(name);
            let takes = match known.is_empty() {
                true => "no arguments".to_owned(),
                false => known.join(", "),
            };
            return ToolArgs::Invalid(format!("`{name}` is no argument of {}, which takes {takes}.", self.tool.name));
        }
        (self.parser)(&mut fields)
    }
}

/// Parsed arguments of a tool.
#[derive(Debug)]
pub(super) enum ToolArgs {
    CreateGrab(Box<create_grab::CreateGrabArgs>),
    GetGrab(Box<get_grab::GetGrabArgs>),
    ListGrabs(ListGrabsRequest),
    GetUsage,
    GetPricing(GetPricingRequest),
    CaptureSite(capture_site::CaptureSiteArgs),
    Monitor(Box<monitor::MonitorArgs>),
    /// Arguments that are not forwarded to the core, with the error message.
    Invalid(String),
}

/// Runs a tool.
pub(super) async fn run(context: ToolContext, args: ToolArgs, progress: Progress) -> ToolResult {
    match args {
        ToolArgs::CreateGrab(args) => create_grab::run(&context, *args, progress).await,
        ToolArgs::GetGrab(args) => get_grab::run(&context, *args).await,
        ToolArgs::ListGrabs(args) => list_grabs::run(&context, args).await,
        ToolArgs::GetUsage => get_usage::run(&context).await,
        ToolArgs::GetPricing(args) => get_pricing::run(&context, args).await,
        ToolArgs::CaptureSite(args) => capture_site::run(&context, args, progress).await,
        ToolArgs::Monitor(args) => monitor::run(&context, *args).await,
        ToolArgs::Invalid(message) => {
            let metadata = context.refuse(&message).await?;
            let mut failure = ApiError::new(ErrorCode::BadRequest, message);
            failure.headers.extend(metadata);
            Err(failure)
        }
    }
}

#[cfg(test)]
mod tests;
