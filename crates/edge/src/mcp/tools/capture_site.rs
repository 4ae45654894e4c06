//! `capture_site`: captures many pages of a site, and says how far that is.

use std::time::Duration;

use grabd_options::HIDDEN;
use grabd_proto::v1::site_service_client::SiteServiceClient;
use grabd_proto::v1::{
    CaptureOptions, CreateSiteRequest, GetSiteRequest, ListSitePagesRequest, Site, SitePages, Unparsed,
};
use http::HeaderMap;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::super::message::shorten;
use super::super::progress::{CallStage, Progress};
use super::arguments::{argument_error, is_unparsed};
use super::context::ToolContext;
use super::output::{ToolOutput, ToolResult};
use crate::rest::call::{self, CoreResponse};
use crate::rest::error::ApiError;
use crate::rest::fields::Fields;
use crate::rest::json as read_json;
use crate::rest::options;

/// How long a call waits for the end of a job.
const WAIT: Duration = Duration::from_secs(20);
/// The first pause between two reads of the state. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// Images whose addresses are returned. The others are in the list of the REST API.
const MAX_IMAGES: usize = 20;
/// Pages that are searched for images.
const MAX_PAGES: i32 = 100;

/// What is reported while the job is open.
const STAGE: CallStage = CallStage { from: 1.0, until: 99.0, message: "Pages of the site are found and captured." };

#[derive(Debug)]
pub(in super::super) enum CaptureSiteArgs {
    /// Starts a job.
    Create(Box<CreateSiteRequest>),
    /// Says how far a job is.
    Get(GetSiteRequest),
}

/// Reads the arguments.
///
/// # Errors
/// With a message for an argument that is not forwarded to the core.
pub(super) fn read(fields: &mut Fields<'_>) -> Result<CaptureSiteArgs, String> {
    let id = fields.read("id", read_json::string);
    if is_unparsed(fields, "id") {
        return Err(argument_error(fields, "id", "the id of a site job, as text"));
    }
    if let Some(id) = id {
        return match fields.unknown_member(&["id"]) {
            Some(name) => {
                Err(format!("`{}` must be left out with `id`, which names a job that exists.", shorten(name)))
            }
            None => Ok(CaptureSiteArgs::Get(GetSiteRequest { id })),
        };
    }
    let capture = fields.read("capture", Capture::parse).unwrap_or_default();
    if let Some(name) = capture.unknown.first() {
        return Err(format!("`{}` in `capture` is no option of create_grab.", shorten(name)));
    }
    let integer = |value: &RawValue| i32::try_from(read_json::integer(value)?).ok();
    let mut request = CreateSiteRequest {
        url: fields.read("url", read_json::string),
        sitemap: fields.read("sitemap", read_json::string),
        capture: capture.options,
        max_pages: fields.read("max_pages", integer),
        max_depth: fields.read("max_depth", integer),
        include: fields.read("include", read_json::strings).unwrap_or_default(),
        exclude: fields.read("exclude", read_json::strings).unwrap_or_default(),
        capture_unparsed: capture.unparsed,
        ..CreateSiteRequest::default()
    };
    request.unparsed = std::mem::take(&mut fields.unparsed);
    // It may have secret options.
    let captures = request.unparsed.iter_mut().filter(|of| of.field == "capture");
    captures.for_each(|of| HIDDEN.clone_into(&mut of.seen));
    Ok(CaptureSiteArgs::Create(Box::new(request)))
}

/// How pages are captured.
#[derive(Default)]
struct Capture {
    options: Option<CaptureOptions>,
    /// Options of the wrong type.
    unparsed: Vec<Unparsed>,
    /// Names that are no options.
    unknown: Vec<String>,
}

impl Capture {
    fn parse(member: &RawValue) -> Option<Self> {
        let mut fields = Fields::parse(member.get().as_bytes()).ok()?;
        let options = options::read(&mut fields);
        let unknown = fields.no_options();
        Some(Self { options: Some(options), unparsed: fields.unparsed, unknown })
    }
}

pub(super) async fn run(context: &ToolContext, args: CaptureSiteArgs, mut progress: Progress) -> ToolResult {
    let until = Instant::now() + WAIT;
    let (mut site, mut metadata) = match args {
        CaptureSiteArgs::Create(request) => create(context, *request).await?,
        CaptureSiteArgs::Get(request) => get(context, request).await?,
    };
    let mut pause = FIRST_PAUSE;
    while site.finished_at.is_none() && Instant::now() + pause <= until {
        progress.report(STAGE, Some(&metadata));
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        // The job goes on, so its id must not be lost, for example when the rate limit is reached.
        let Ok(read) = get(context, GetSiteRequest { id: site.id.clone() }).await else { break };
        (site, metadata) = read;
    }
    let images = match images(context, &site.id).await {
        Ok((images, of_list)) => {
            metadata = of_list;
            images
        }
        Err(_) => Vec::new(),
    };
    let structured = structured_content(&site, &images).ok_or_else(|| context.internal(INCOMPLETE))?;
    Ok(ToolOutput { structured, blocks: Vec::new(), metadata })
}

/// The cause of an internal error.
const INCOMPLETE: &str = "the core returned an incomplete site job";

async fn create(context: &ToolContext, request: CreateSiteRequest) -> Result<(Site, HeaderMap), ApiError> {
    let mut core = SiteServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, request, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.create_site(sent)).await?;
    Ok((message.site.ok_or_else(|| context.internal(INCOMPLETE))?, metadata))
}

async fn get(context: &ToolContext, request: GetSiteRequest) -> Result<(Site, HeaderMap), ApiError> {
    let mut core = SiteServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, request, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.get_site(sent)).await?;
    Ok((message.site.ok_or_else(|| context.internal(INCOMPLETE))?, metadata))
}

/// The first images of a job, with the addresses of their pages.
async fn images(context: &ToolContext, id: &str) -> Result<(Vec<Value>, HeaderMap), ApiError> {
    let request = ListSitePagesRequest { id: id.to_owned(), limit: Some(MAX_PAGES), ..ListSitePagesRequest::default() };
    let mut core = SiteServiceClient::new(context.mcp.transport.clone());
    let sent = call::request(&context.headers, request, call::QUERY_DEADLINE);
    let CoreResponse { message, metadata } =
        call::send(&context.headers, call::QUERY_DEADLINE, core.list_site_pages(sent)).await?;
    let images = message.pages.iter().filter_map(|page| {
        let image_url = page.image_url.as_ref()?;
        Some(json!({ "url": page.url, "image_url": image_url, "grab_id": page.grab_id }))
    });
    Ok((images.take(MAX_IMAGES).collect(), metadata))
}

/// What is returned of a job. `None` if a required field is missing.
fn structured_content(site: &Site, images: &[Value]) -> Option<Value> {
    let SitePages { found, skipped, captured, failed, waiting } = *site.pages.as_ref()?;
    let mut structured = json!({
        "id": site.id,
        "state": site.state,
        "finished": site.finished_at.is_some(),
        "pages": { "found": found, "skipped": skipped, "captured": captured, "failed": failed, "waiting": waiting },
        "images": images,
    });
    if let Some(error) = &site.error {
        structured["error"] = json!({ "code": error.code, "message": error.message });
    }
    Some(structured)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<CaptureSiteArgs, String> {
        read(&mut Fields::parse(arguments.as_bytes()).unwrap())
    }

    #[test]
    fn arguments_start_a_job_or_name_one() {
        let CaptureSiteArgs::Create(request) =
            parse(r#"{"url":"https://a.example/","max_pages":5,"include":["/a/*"],"capture":{"full_page":true}}"#)
                .unwrap()
        else {
            panic!("not a create")
        };
        assert_eq!((request.url.as_deref(), request.max_pages), (Some("https://a.example/"), Some(5)));
        assert_eq!(request.capture.unwrap().full_page, Some(true));
        assert!(matches!(parse(r#"{"id":"a"}"#), Ok(CaptureSiteArgs::Get(GetSiteRequest { id })) if id == "a"));
        for (arguments, words) in [
            (r#"{"id":7}"#, "`id` must be the id of a site job, as text; got 7."),
            (r#"{"id":"a","url":"https://a.example/"}"#, "`url` must be left out with `id`"),
            (r#"{"url":"https://a.example/","capture":{"fullpage":true}}"#, "`fullpage` in `capture` is no option"),
        ] {
            let error = parse(arguments).unwrap_err();
            assert!(error.contains(words), "{arguments}: {error}");
        }
    }

    #[test]
    fn values_of_the_wrong_type_are_forwarded_to_the_core() {
        let CaptureSiteArgs::Create(request) =
            parse(r#"{"url":5,"max_pages":"5","capture":["secret"],"include":"/a"}"#).unwrap()
        else {
            panic!("not a create")
        };
        let seen: Vec<String> = request.unparsed.iter().map(|of| format!("{}={}", of.field, of.seen)).collect();
        assert_eq!(
            seen,
            [
                format!("capture={HIDDEN}"),
                "url=5".to_owned(),
                "max_pages=\"5\"".to_owned(),
                "include=\"/a\"".to_owned()
            ]
        );
    }

    #[test]
    fn result_has_the_numbers_of_pages_and_the_images() {
        let pages = Some(SitePages { found: 9, skipped: 1, captured: 5, failed: 0, waiting: 3 });
        let site = Site { id: "a".to_owned(), state: "capturing".to_owned(), pages, ..Site::default() };
        let image = json!({ "url": "https://a.example/", "image_url": "https://b.example/i/a.png", "grab_id": "g" });
        let structured = structured_content(&site, std::slice::from_ref(&image)).unwrap();
        assert_eq!((&structured["finished"], &structured["pages"]["captured"]), (&json!(false), &json!(5)));
        assert_eq!((&structured["images"][0], structured.get("error")), (&image, None));
        assert!(structured_content(&Site::default(), &[]).is_none());
    }
}
