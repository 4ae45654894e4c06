//! `get_grab`: one grab, optionally with its image.

use grabd_proto::v1::GetGrabRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;

use super::super::message::shorten;
use super::context::ToolContext;
use super::grab_output::{self, ShowImage};
use super::output::ToolResult;
use crate::rest::call::{self, CoreResponse};
use crate::rest::fields::Fields;
use crate::rest::json;

/// The last row of the highest image.
const MAX_ROW: u32 = 16_383;

#[derive(Debug)]
pub(in super::super) struct GetGrabArgs {
    id: String,
    show: ShowImage,
}

/// Reads the arguments.
///
/// # Errors
/// With a message for an argument that is not forwarded to the core.
pub(super) fn read(fields: &mut Fields<'_>) -> Result<GetGrabArgs, String> {
    let include_image = read_bool(fields, "include_image", false)?;
    let from_row = read_row(fields)?;
    let show = if include_image { ShowImage::FromRow(from_row) } else { ShowImage::No };
    // Only the presence and type are checked here; the core validates the id.
    let id = fields.read("id", json::string);
    id.map(|id| GetGrabArgs { id, show }).ok_or_else(|| argument_error(fields, "id", "the id of a grab, as text"))
}

/// Reads the first row of the image that is shown.
fn read_row(fields: &mut Fields<'_>) -> Result<u32, String> {
    match fields.read("from_row", |value| u32::try_from(json::integer(value)?).ok().filter(|row| *row <= MAX_ROW)) {
        Some(row) => Ok(row),
        None if fields.unparsed.iter().any(|unparsed| unparsed.field == "from_row") => {
            Err(argument_error(fields, "from_row", &format!("an integer from 0 to {MAX_ROW}")))
        }
        None => Ok(0),
    }
}

/// Reads a boolean argument that is not forwarded to the core.
///
/// # Errors
/// With a message for a value that is not a boolean.
pub(super) fn read_bool(fields: &mut Fields<'_>, name: &str, default: bool) -> Result<bool, String> {
    match fields.read(name, json::boolean) {
        Some(value) => Ok(value),
        None if fields.unparsed.iter().any(|unparsed| unparsed.field == name) => {
            Err(argument_error(fields, name, "true or false"))
        }
        None => Ok(default),
    }
}

fn argument_error(fields: &Fields<'_>, name: &str, allowed: &str) -> String {
    match fields.unparsed.iter().find(|unparsed| unparsed.field == name) {
        Some(unparsed) => format!("`{name}` must be {allowed}; got {}.", shorten(&unparsed.seen)),
        None => format!("`{name}` must be {allowed}."),
    }
}

pub(super) async fn run(context: &ToolContext, args: GetGrabArgs) -> ToolResult {
    let GetGrabArgs { id, show } = args;
    let mut core = GrabServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, GetGrabRequest { id }, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.get_grab(sent)).await?;
    let grab = message.grab.ok_or_else(|| context.internal("the core returned no grab"))?;
    grab_output::tool_output(context, grab, show, metadata).await
}
