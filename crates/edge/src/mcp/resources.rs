//! Resources: the image and the files of a grab, named by the grab's id, or by the URL that a result links to.

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grabd_proto::called_as;
use grabd_proto::v1::access_service_client::AccessServiceClient;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{ErrorCode as Code, GetGrabRequest, Grab, GrabFile, TakeRequestRequest};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use rmcp::model::{
    CacheScope, ErrorCode, ErrorData, ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult,
    ResourceContents, ResourceTemplate, ResultType,
};
use serde_json::json;

use super::era::Era;
use super::json_rpc;
use super::message::{RpcRequest, shorten};
use super::methods::{TTL_MS, result_meta};
use super::state::Mcp;
use crate::reading::{FileError, LoadedFile};
use crate::rest::call::{self, CoreResponse};
use crate::rest::error::ApiError;
use crate::rest::headers::{self, PRIVATE_NO_STORE};
use crate::rest::json;

/// The scheme of URIs that name a file by its grab.
const SCHEME: &str = "grab://";
/// The name of the image of a grab in such a URI.
const IMAGE: &str = "image";
/// The largest file that is sent, in bytes. Larger ones are fetched at their URLs.
const MAX_BYTES: u64 = 8 << 20;
/// How the media types of text begin.
const TEXT_TYPES: [&str; 3] = ["text/", "application/json", "application/yaml"];
/// How long clients may cache a file, which does not change but may be deleted.
const FILE_TTL_MS: u64 = 60_000;

/// Why a resource is not read.
enum ReadFailure {
    /// For the client.
    Rpc(ErrorData),
    /// Of the core.
    Core(ApiError),
}

/// No resource is listed: `list_grabs` finds grabs.
pub(super) fn list(era: Era) -> ListResourcesResult {
    let (result_type, meta) = of_list(era);
    ListResourcesResult {
        result_type,
        meta,
        next_cursor: None,
        ttl_ms: Some(TTL_MS),
        cache_scope: Some(CacheScope::Public),
        resources: Vec::new(),
    }
}

/// The form of the URIs.
pub(super) fn templates(era: Era) -> ListResourceTemplatesResult {
    let (result_type, meta) = of_list(era);
    let about = "A file of a capture: image, a kind in its files such as markdown, elements or pdf, or a file name such as \
                 slice-02.png. The URLs of its files can be read, too.";
    let template = ResourceTemplate::new(format!("{SCHEME}{{id}}/{{file}}"), "capture_file")
        .with_title("File of a capture")
        .with_description(about);
    ListResourceTemplatesResult {
        result_type,
        meta,
        next_cursor: None,
        ttl_ms: Some(TTL_MS),
        cache_scope: Some(CacheScope::Public),
        resource_templates: vec![template],
    }
}

fn of_list(era: Era) -> (Option<ResultType>, Option<MetaObject>) {
    match era {
        Era::Modern => (Some(ResultType::COMPLETE), result_meta()),
        Era::Legacy => (None, None),
    }
}

/// Reads a resource. Text is sent as text, and everything else in Base64.
pub(super) async fn read(mcp: &Mcp, parts: &Parts, era: Era, message: &RpcRequest<'_>) -> Response {
    let mut headers = parts.headers.clone();
    called_as::set(&mut headers, "MCP", "resources/read");
    let failure = match load(mcp, &headers, message).await {
        Ok((uri, file, metadata)) => return file_response(era, message, uri, file, &metadata),
        Err(failure) => failure,
    };
    match failure {
        ReadFailure::Rpc(error) => json_rpc::error(era, &message.id, &error),
        // Clients need the HTTP status to request a new token.
        ReadFailure::Core(failure) if matches!(failure.code, Code::Unauthorized | Code::Forbidden) => {
            mcp.http_error(&headers, failure)
        }
        ReadFailure::Core(failure) if failure.code == Code::NotFound => {
            json_rpc::error(era, &message.id, &not_found(era, failure.message.into_owned()))
        }
        ReadFailure::Core(failure) => {
            let data = json!({ "error": failure.body() });
            let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, failure.message.clone(), Some(data));
            json_rpc::error(era, &message.id, &error)
        }
    }
}

/// The file that the request names, the URI, and the metadata of the core's response.
async fn load(
    mcp: &Mcp,
    headers: &HeaderMap,
    message: &RpcRequest<'_>,
) -> Result<(String, LoadedFile, HeaderMap), ReadFailure> {
    let uri = message.params.get("uri").and_then(|uri| json::string(uri));
    let Some(uri) = uri else {
        // Only authenticated callers learn what is wrong.
        take_request(mcp, headers).await.map_err(ReadFailure::Core)?;
        let error = ErrorData::invalid_params("`uri` must be the URI of a resource, as text.", None);
        return Err(ReadFailure::Rpc(error));
    };
    let (url, metadata) = match uri.strip_prefix(SCHEME) {
        Some(name) => {
            let (id, file) = name.split_once('/').unwrap_or((name, IMAGE));
            let (grab, metadata) = get_grab(mcp, headers, id).await.map_err(ReadFailure::Core)?;
            let missing = || {
                let message = format!("The grab has no file {:?}; it has {}.", shorten(file), file_names(&grab));
                ReadFailure::Core(ApiError::new(Code::NotFound, message))
            };
            (url_of(&grab, file).ok_or_else(missing)?, metadata)
        }
        None => (uri.clone(), take_request(mcp, headers).await.map_err(ReadFailure::Core)?),
    };
    let file = mcp.reader.file(&url, MAX_BYTES).await.map_err(|why| {
        let core = |code| ReadFailure::Core(ApiError::new(code, why.to_string()));
        match why {
            FileError::Missing => core(Code::NotFound),
            FileError::Busy => core(Code::RateLimitExceeded),
            FileError::Unreadable => core(Code::InternalError),
            FileError::TooLarge(_) => {
                ReadFailure::Rpc(ErrorData::invalid_params(why.to_string(), Some(json!({ "url": url }))))
            }
        }
    })?;
    Ok((uri, file, metadata))
}

/// The URL of a file of a grab: by its kind, by its name, of which there may be several of a kind, or by the name that a step
/// gives an image.
fn url_of(grab: &Grab, file: &str) -> Option<String> {
    if file == IMAGE {
        return grab.image_url.clone();
    }
    let is_named = |url: &str| url.rsplit_once('/').is_some_and(|(_, name)| name == file);
    let is_image = |name: &Option<String>| name.as_deref() == Some(file);
    let is_meant = |known: &&GrabFile| known.kind == file || is_named(&known.url) || is_image(&known.name);
    grab.files.iter().find(is_meant).map(|found| found.url.clone())
}

/// What can be named of a grab.
fn file_names(grab: &Grab) -> String {
    let mut names: Vec<&str> = grab.image_url.iter().map(|_| IMAGE).collect();
    for file in &grab.files {
        if !names.contains(&file.kind.as_str()) {
            names.push(&file.kind);
        }
    }
    if names.is_empty() { "no files".to_owned() } else { names.join(", ") }
}

async fn get_grab(mcp: &Mcp, headers: &HeaderMap, id: &str) -> Result<(Grab, HeaderMap), ApiError> {
    let mut core = GrabServiceClient::new(mcp.transport.clone());
    let sent = call::request(headers, GetGrabRequest { id: id.to_owned() }, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } = call::send(headers, call::QUERY_DEADLINE, core.get_grab(sent)).await?;
    let grab = message.grab;
    let grab = grab.ok_or_else(|| ApiError::internal("the core returned no grab", call::request_id(headers)))?;
    Ok((grab, metadata))
}

/// Counts a request that no other service counts, and checks the credential.
async fn take_request(mcp: &Mcp, headers: &HeaderMap) -> Result<HeaderMap, ApiError> {
    let mut core = AccessServiceClient::new(mcp.transport.clone());
    let sent = call::request(headers, TakeRequestRequest {}, call::QUERY_DEADLINE);
    let reply = call::send(headers, call::QUERY_DEADLINE, core.take_request(sent)).await?;
    Ok(reply.metadata)
}

/// The error for a resource that does not exist, whose code depends on the era.
fn not_found(era: Era, message: String) -> ErrorData {
    match era {
        Era::Modern => ErrorData::invalid_params(message, None),
        Era::Legacy => ErrorData::resource_not_found(message, None),
    }
}

/// The response with a file. Its memory is reserved until it is sent.
fn file_response(era: Era, message: &RpcRequest<'_>, uri: String, file: LoadedFile, metadata: &HeaderMap) -> Response {
    let LoadedFile { bytes, media_type, memory } = file;
    let is_text = TEXT_TYPES.iter().any(|prefix| media_type.starts_with(prefix));
    let contents = match String::from_utf8(bytes) {
        Ok(text) if is_text => ResourceContents::text(text, uri),
        Ok(text) => ResourceContents::blob(BASE64_STANDARD.encode(text), uri),
        Err(error) => ResourceContents::blob(BASE64_STANDARD.encode(error.as_bytes()), uri),
    };
    let mut result = ReadResourceResult::new(vec![contents.with_mime_type(media_type)])
        .with_ttl_ms(FILE_TTL_MS)
        .with_cache_scope(CacheScope::Private);
    match era {
        Era::Modern => result.meta = result_meta(),
        Era::Legacy => result.result_type = None,
    }
    let body = memory.attach(json_rpc::result_body(&message.id, result));
    headers::response(StatusCode::OK, PRIVATE_NO_STORE, Body::from(body), metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_kind_or_by_name() {
        let file =
            |kind: &str, url: &str| GrabFile { kind: kind.to_owned(), url: url.to_owned(), ..GrabFile::default() };
        let grab = Grab {
            image_url: Some("https://grabd.example/i/a/b/c.png".to_owned()),
            files: vec![
                file("markdown", "https://grabd.example/f/key/page.md"),
                file("slice", "https://grabd.example/f/key/slice-01.png"),
                file("slice", "https://grabd.example/f/key/slice-02.png"),
                GrabFile {
                    name: Some("menu".to_owned()),
                    ..file("capture", "https://grabd.example/f/key/capture-1.png")
                },
            ],
            ..Grab::default()
        };
        let url = |name: &str| url_of(&grab, name);
        assert_eq!(url("image").as_deref(), Some("https://grabd.example/i/a/b/c.png"));
        assert_eq!(url("markdown").as_deref(), Some("https://grabd.example/f/key/page.md"));
        assert_eq!(url("slice-02.png").as_deref(), Some("https://grabd.example/f/key/slice-02.png"));
        assert_eq!(url("menu").as_deref(), Some("https://grabd.example/f/key/capture-1.png"));
        assert_eq!((url("pdf"), url("")), (None, None));
        assert_eq!(file_names(&grab), "image, markdown, slice, capture");
        assert_eq!(file_names(&Grab::default()), "no files");
    }
}
