//! The playground of the start page: captures of pages that come with grabd, and of live pages that the operator allows, with
//! the options that a visitor chooses.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use grabd_domain::capture::{CaptureRequest, Device, Scale};
use grabd_domain::target::TargetUrl;
use grabd_engine::samples::{self, Sample, SampleError, SampleImage, SamplePage};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::client_ip::ClientIp;
use crate::form::Form;
use crate::grabs::view::{Frame, title};
use crate::problem::Problem;
use crate::state::Web;

/// The path of the images. The query is that of the form.
pub(crate) const PATH: &str = "/sample.webp";
/// How long browsers may keep an image. Those of pages that come with grabd change only with the service.
const BUNDLED_CACHED: &str = "public, max-age=3600";
const SITE_CACHED: &str = "public, max-age=60";
/// The size in pixels of the capture that comes with grabd: `assets/picture.webp`, of the page "daylight" without options. A
/// test compares it with a capture.
const PICTURE_SIZE: [u32; 2] = [1280, 720];
/// The URL in code for a page that has none.
pub(crate) const EXAMPLE_URL: &str = "https://example.com/";
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
    /// The pages that come with grabd.
    pub(crate) pages: Vec<Choice>,
    /// The live pages that the operator allows.
    pub(crate) sites: Vec<Choice>,
    pub(crate) is_phone: bool,
    pub(crate) full_page: bool,
    pub(crate) is_dark: bool,
    pub(crate) result: Option<Result<Captured, &'static str>>,
    /// What a capture of the selected page gives, while none was asked for. None if that is not known: a live page is not
    /// visited before somebody captures it.
    pub(crate) preview: Option<Captured>,
    /// The same options for the page itself, or for a page of the visitor.
    pub(crate) request: CaptureRequest,
}

/// A page to choose.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) name: String,
    pub(crate) is_selected: bool,
}

/// A capture.
pub(crate) struct Captured {
    pub(crate) source: String,
    pub(crate) frame: Frame,
    pub(crate) description: String,
    pub(crate) facts: String,
}

/// The playground for the query of the start page. None if this process has no browsers.
///
/// # Errors
/// When the visitor has asked for too many captures.
pub(crate) async fn playground(web: &Web, client: ClientIp, query: &Form) -> Result<Option<Playground>, Problem> {
    if !web.core.offers_samples() {
        return Ok(None);
    }
    let chosen = sample(web, query);
    let sample = chosen.unwrap_or_else(|| default_sample(web));
    let (result, preview) = match chosen {
        None => (None, preview(web, sample)),
        Some(sample) => {
            web.limits.samples.take(client.0)?;
            let result = match samples::capture(&web.core, sample).await {
                Ok(image) => Ok(captured(web, sample, &image)),
                Err(error) => Err(explain(error)),
            };
            (Some(result), None)
        }
    };
    let choice = |page: SamplePage| Choice {
        value: value(web, page).to_owned(),
        name: name(web, page),
        is_selected: page == sample.page,
    };
    let (sites, pages): (Vec<_>, Vec<_>) = web.core.sample_pages().partition(is_site);
    Ok(Some(Playground {
        pages: pages.into_iter().map(choice).collect(),
        sites: sites.into_iter().map(choice).collect(),
        is_phone: sample.is_phone,
        full_page: sample.full_page,
        is_dark: sample.is_dark,
        result,
        preview,
        request: request(web, sample),
    }))
}

/// The request of the sample that a query names, as a customer makes it. None if the query names none.
pub(crate) fn requested(web: &Web, query: &Form) -> Option<CaptureRequest> {
    sample(web, query).map(|sample| request(web, sample))
}

/// The options of a sample, for its live page, or for a page of the visitor.
fn request(web: &Web, sample: Sample) -> CaptureRequest {
    let url = match sample.page {
        SamplePage::Site(_) => value(web, sample.page),
        SamplePage::Daylight | SamplePage::Dashboard => EXAMPLE_URL,
    };
    CaptureRequest { url: Some(url.to_owned()), ..sample.options() }
}

const fn is_site(page: &SamplePage) -> bool {
    matches!(page, SamplePage::Site(_))
}

/// The sample that is selected first: of a live page, if the operator allows any.
fn default_sample(web: &Web) -> Sample {
    let page = web.core.sample_pages().find(is_site).unwrap_or(SamplePage::Daylight);
    Sample { page, is_phone: false, full_page: false, is_dark: false }
}

/// The capture of a sample that was made before, or the capture of the first page that comes with grabd.
fn preview(web: &Web, sample: Sample) -> Option<Captured> {
    if sample.page != SamplePage::Daylight {
        return samples::find_cached(&web.core, sample).map(|image| captured(web, sample, &image));
    }
    let [width, height] = PICTURE_SIZE;
    Some(Captured {
        source: web.assets.picture.path.clone(),
        frame: Frame::of(width, height, Scale::ONE),
        description: describe(web, sample.page),
        facts: format!("{width} × {height} px"),
    })
}

/// A description of the image for those who do not see it.
fn describe(web: &Web, page: SamplePage) -> String {
    format!("Capture of “{}”", name(web, page))
}

fn explain(error: SampleError) -> &'static str {
    match error {
        SampleError::Busy => "All browsers are busy with captures of customers. Try again in a few seconds.",
        SampleError::Unavailable | SampleError::Failed => {
            "The page could not be captured. Try another page, or try again in a minute."
        }
        SampleError::TooLarge => "The image of the page is too large for this demonstration. Turn off “Full page”.",
    }
}

/// The text for a page in forms and URLs: a word, or the URL of a live page.
fn value(web: &Web, page: SamplePage) -> &str {
    match page {
        SamplePage::Daylight => "daylight",
        SamplePage::Dashboard => "dashboard",
        SamplePage::Site(site) => web.core.sample_url(site).map(TargetUrl::as_str).unwrap_or_default(),
    }
}

fn name(web: &Web, page: SamplePage) -> String {
    match page {
        SamplePage::Daylight => "Field guide".to_owned(),
        SamplePage::Dashboard => "Dashboard".to_owned(),
        SamplePage::Site(_) => title(value(web, page)),
    }
}

/// The sample that a query names. The text is only compared with those of the pages.
fn sample(web: &Web, query: &Form) -> Option<Sample> {
    let page = web.core.sample_pages().find(|page| value(web, *page) == query.get(PAGE))?;
    let (is_phone, full_page) = (query.get(DEVICE) == PHONE, query.get(FULL_PAGE) == CHECKED);
    Some(Sample { page, is_phone, full_page, is_dark: query.get(COLOR_SCHEME) == DARK })
}

fn captured(web: &Web, sample: Sample, image: &SampleImage) -> Captured {
    let SampleImage { image: file, width, height, execution_ms } = image;
    let Sample { page, is_phone, full_page, is_dark } = sample;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair(PAGE, value(web, page));
    for (name, value, is_chosen) in
        [(DEVICE, PHONE, is_phone), (FULL_PAGE, CHECKED, full_page), (COLOR_SCHEME, DARK, is_dark)]
    {
        if is_chosen {
            query.append_pair(name, value);
        }
    }
    let scale = if is_phone { Device::Phone.defaults().1 } else { Scale::ONE };
    let (kib, seconds) = (file.len().div_ceil(1024), f64::from(*execution_ms) / 1000.0);
    Captured {
        source: format!("{PATH}?{}", query.finish()),
        frame: Frame::of(*width, *height, scale),
        description: describe(web, page),
        facts: format!("{width} × {height} px, {kib} KiB, captured in {seconds:.1} s"),
    }
}

/// The image of a sample. That of a live page is only shown, after the start page has captured it.
pub(crate) async fn image(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    web.limits.parts.take(client.0)?;
    let query = Form::parse(query.unwrap_or_default().as_bytes());
    let not_found = || Problem::not_found("There is no such sample. Choose one on the start page.");
    let sample = sample(&web, &query).ok_or_else(not_found)?;
    let (image, cached) = match sample.page {
        SamplePage::Site(_) => (samples::find_cached(&web.core, sample).ok_or(SampleError::Busy), SITE_CACHED),
        SamplePage::Daylight | SamplePage::Dashboard => (samples::capture(&web.core, sample).await, BUNDLED_CACHED),
    };
    match image {
        Ok(image) => Ok(([(CONTENT_TYPE, "image/webp"), (CACHE_CONTROL, cached)], image.image.clone()).into_response()),
        Err(SampleError::Unavailable) => Err(not_found()),
        Err(SampleError::Busy | SampleError::Failed | SampleError::TooLarge) => Err(Problem::sample_unavailable()),
    }
}
