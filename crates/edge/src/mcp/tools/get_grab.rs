//! `get_grab`: one grab, optionally with its image and with what is to be read of its files.

use grabd_proto::v1::GetGrabRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;

use super::arguments::{argument_error, read_bool, read_integer};
use super::context::ToolContext;
use super::grab_output::{self, ShowImage, Wanted};
use super::output::ToolResult;
use super::read_files::WantedFiles;
use crate::rest::call::{self, CoreResponse};
use crate::rest::fields::Fields;
use crate::rest::json;

/// The last row of the highest image.
const MAX_ROW: u32 = 16_383;

#[derive(Debug)]
pub(in super::super) struct GetGrabArgs {
    id: String,
    wanted: Wanted,
}

/// Reads the arguments.
///
/// # Errors
/// With a message for an argument that is not forwarded to the core.
pub(super) fn read(fields: &mut Fields<'_>) -> Result<GetGrabArgs, String> {
    let include_image = read_bool(fields, "include_image", false)?;
    let from_row = read_integer(fields, "from_row", (0, MAX_ROW), 0)?;
    let image = if include_image { ShowImage::FromRow(from_row) } else { ShowImage::No };
    let wanted = Wanted { image, files: WantedFiles::read_of_existing(fields)? };
    // Only the presence and type are checked here; the core validates the id.
    let id = fields.read("id", json::string);
    id.map(|id| GetGrabArgs { id, wanted }).ok_or_else(|| argument_error(fields, "id", "the id of a grab, as text"))
}

pub(super) async fn run(context: &ToolContext, args: GetGrabArgs) -> ToolResult {
    let GetGrabArgs { id, wanted } = args;
    let mut core = GrabServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, GetGrabRequest { id }, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.get_grab(sent)).await?;
    let grab = message.grab.ok_or_else(|| context.internal("the core returned no grab"))?;
    grab_output::tool_output(context, grab, &wanted, metadata).await
}
