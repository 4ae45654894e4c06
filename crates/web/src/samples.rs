//! The playground of the start page: captures of pages that come with grabd, with the options that a visitor chooses.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use grabd_domain::Fault;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_engine::samples::{self, Sample, SampleError, SampleImage, SamplePage};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::client_ip::ClientIp;
use crate::form::Form;
use crate::grabs::snippets;
use crate::problem::Problem;
use crate::state::Web;

/// The path of the images. The query is that of the form.
pub(crate) const PATH: &str = "/sample.webp";
/// How long browsers may keep an image. It changes only with the service.
const CACHED: &str = "public, max-age=3600";
const PAGE: &str = "page";
const DEVICE: &str = "device";
const PHONE: &str = "phone";
const FULL_PAGE: &str = "full_page";
const COLOR_SCHEME: &str = "color_scheme";
const DARK: &str = "dark";
/// The value of a checked box.
const CHECKED: &str = "true";

/// The form, and the capture that was asked for.
pub(crate) struct Playground {
    pub(crate) pages: Vec<Choice>,
    pub(crate) is_phone: bool,
    pub(crate) full_page: bool,
    pub(crate) is_dark: bool,
    pub(crate) result: Option<Result<Captured, &'static str>>,
}

/// A page to choose.
pub(crate) struct Choice {
    pub(crate) value: &'static str,
    pub(crate) name: &'static str,
    pub(crate) is_selected: bool,
}

/// A capture.
pub(crate) struct Captured {
    pub(crate) source: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) description: String,
    pub(crate) facts: String,
    pub(crate) curl: String,
}

/// The playground for the query of the start page. None if this process has no browsers.
///
/// # Errors
/// When a sample is not valid.
pub(crate) async fn playground(web: &Web, query: &Form) -> Result<Option<Playground>, Fault> {
    if !web.core.offers_samples() {
        return Ok(None);
    }
    let chosen = sample(query);
    let sample =
        chosen.unwrap_or(Sample { page: SamplePage::Daylight, is_phone: false, full_page: false, is_dark: false });
    let result = match chosen {
        None => None,
        Some(sample) => Some(match samples::capture(&web.core, sample).await {
            Ok(image) => Ok(captured(web, sample, &image)?),
            Err(SampleError::Busy) => {
                Err("All browsers are busy with captures of customers. Try again in a few seconds.")
            }
            Err(SampleError::Unavailable | SampleError::Failed) => Err("The page could not be captured. Try again."),
        }),
    };
    let choice =
        |page: SamplePage| Choice { value: page.as_str(), name: page.name(), is_selected: page == sample.page };
    let Sample { page: _, is_phone, full_page, is_dark } = sample;
    Ok(Some(Playground { pages: SamplePage::ALL.map(choice).into(), is_phone, full_page, is_dark, result }))
}

/// The sample that a query names.
fn sample(query: &Form) -> Option<Sample> {
    let page = SamplePage::ALL.into_iter().find(|page| page.as_str() == query.get(PAGE))?;
    let (is_phone, full_page) = (query.get(DEVICE) == PHONE, query.get(FULL_PAGE) == CHECKED);
    Some(Sample { page, is_phone, full_page, is_dark: query.get(COLOR_SCHEME) == DARK })
}

fn captured(web: &Web, sample: Sample, image: &SampleImage) -> Result<Captured, Fault> {
    let SampleImage { image: file, width, height, execution_ms } = image;
    let Sample { page, is_phone, full_page, is_dark } = sample;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair(PAGE, page.as_str());
    for (name, value, is_chosen) in
        [(DEVICE, PHONE, is_phone), (FULL_PAGE, CHECKED, full_page), (COLOR_SCHEME, DARK, is_dark)]
    {
        if is_chosen {
            query.append_pair(name, value);
        }
    }
    let own = CaptureRequest { url: Some("https://example.com/".to_owned()), ..sample.options() };
    let (kib, seconds) = (file.len().div_ceil(1024), f64::from(*execution_ms) / 1000.0);
    Ok(Captured {
        source: format!("{PATH}?{}", query.finish()),
        width: *width,
        height: *height,
        description: format!("Capture of the sample page “{}”", page.name()),
        facts: format!("{width} × {height} px, {kib} KiB, captured in {seconds:.1} s"),
        curl: snippets::curl(web.core.public_url(), &CaptureSpec::parse(&own)?),
    })
}

/// The image of a sample.
pub(crate) async fn image(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    web.limits.parts.take(client.0)?;
    let query = Form::parse(query.unwrap_or_default().as_bytes());
    let not_found = || Problem::not_found("There is no such sample. Choose one on the start page.");
    let sample = sample(&query).ok_or_else(not_found)?;
    match samples::capture(&web.core, sample).await {
        Ok(image) => Ok(([(CONTENT_TYPE, "image/webp"), (CACHE_CONTROL, CACHED)], image.image.clone()).into_response()),
        Err(SampleError::Unavailable) => Err(not_found()),
        Err(SampleError::Busy | SampleError::Failed) => Err(Problem::sample_unavailable()),
    }
}
