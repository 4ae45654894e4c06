//! `get_grab`: one grab, and its picture if wanted.

use grabd_proto::v1::GetGrabRequest;
use grabd_proto::v1::grab_service_client::GrabServiceClient;

use super::super::message::shortened;
use super::{Desk, Outcome, shown};
use crate::rest::call::{self, Answer};
use crate::rest::fields::Fields;
use crate::rest::json;

#[derive(Debug)]
pub(in super::super) struct Asked {
    id: String,
    include_image: bool,
}

pub(super) fn read(fields: &mut Fields<'_>) -> super::Asked {
    let asked = switch(fields, "include_image", false).and_then(|include_image| {
        // Which ids there are is the core's to say; that there is one is not.
        let id = fields.read("id", json::string);
        id.map(|id| Asked { id, include_image }).ok_or_else(|| refused(fields, "id", "the id of a grab, as text"))
    });
    asked.map_or_else(super::Asked::Unacceptable, super::Asked::GetGrab)
}

/// A switch of this face's own.
///
/// # Errors
/// For a value that is neither on nor off.
pub(super) fn switch(fields: &mut Fields<'_>, name: &str, absent: bool) -> Result<bool, String> {
    match fields.read(name, json::boolean) {
        Some(on) => Ok(on),
        None if fields.unparsed.iter().any(|unparsed| unparsed.field == name) => {
            Err(refused(fields, name, "true or false"))
        }
        None => Ok(absent),
    }
}

fn refused(fields: &Fields<'_>, name: &str, allowed: &str) -> String {
    match fields.unparsed.iter().find(|unparsed| unparsed.field == name) {
        Some(unparsed) => format!("`{name}` must be {allowed}; got {}.", shortened(&unparsed.seen)),
        None => format!("`{name}` must be {allowed}."),
    }
}

pub(super) async fn run(desk: &Desk, asked: Asked) -> Outcome {
    let Asked { id, include_image } = asked;
    let mut core = GrabServiceClient::new(desk.mcp.transport.clone());
    let sent = call::request(&desk.headers, GetGrabRequest { id }, call::PROMPT);
    let Answer { message, metadata } = call::answer(&desk.headers, call::PROMPT, core.get_grab(sent)).await?;
    let grab = message.grab.ok_or_else(|| desk.internal("the core told no grab"))?;
    shown::grab(desk, grab, include_image, metadata).await
}
