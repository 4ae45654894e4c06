//! Capture specs. A spec is parsed once from the caller's request and is valid from then on.

mod appearance;
mod attachments;
mod class;
mod combinations;
mod conditions;
mod device;
mod files;
mod format;
mod freeze;
mod highlight;
mod metadata;
mod network;
mod page;
mod page_files;
mod page_text;
mod pdf;
mod request;
mod request_rules;
mod secrets;
mod selector;
mod steps;
mod stored;
mod thumbnail;
mod tolerance;
mod unparsed;
mod viewport;
mod viewports;

use std::collections::BTreeMap;
use std::time::Duration;

pub use grabd_options::{CaptureRequest, HIDDEN, Rectangle, Secret, Value as OptionValue};
use grabd_options::{TABLE, Value, unknown};

pub use self::appearance::{Appearance, Vision};
pub use self::attachments::{AttachmentName, AttachmentNumber, SliceNumber, StepImageNumber, ViewportNumber};
pub use self::class::Class;
pub use self::conditions::Conditions;
pub use self::device::{Device, DeviceKind, DeviceSystem};
pub use self::files::{Content, FileKind};
pub use self::format::{Format, Scale};
pub use self::freeze::Freeze;
pub use self::highlight::{Highlight, HighlightColor};
pub use self::network::{BlockedContent, Blocking, Geolocation, RequestType};
pub use self::page::{ClipArea, Fit, StatusDecision, StatusPolicy, WaitUntil};
pub use self::page_text::{PagePart, PageText};
pub use self::pdf::{Length, Margins, Paper, PdfLayout, PrintScale};
pub use self::request_rules::RequestRule;
pub use self::secrets::{BasicAuth, Cookie, SameSite, Secrets, UploadUrl};
pub use self::selector::Selector;
pub use self::steps::{HeldKey, KeyPress, ScrollTarget, Step};
pub use self::stored::LONG_OPTION_BYTES;
pub use self::thumbnail::{Thumbnail, ThumbnailFit};
pub use self::tolerance::Tolerance;
pub use self::viewport::Viewport;
use crate::faults::{Fault, Field};
use crate::ids::{GrabId, ProxyId};
use crate::limits;
use crate::target::TargetUrl;

/// A valid capture spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSpec {
    /// The target.
    pub url: TargetUrl,
    /// The viewport.
    pub viewport: Viewport,
    /// The image format.
    pub format: Format,
    /// Capture the full page instead of the viewport.
    pub full_page: bool,
    /// Delay between the page being ready and the capture.
    pub delay: Duration,
    /// The element to capture instead of the viewport.
    pub selector: Option<Selector>,
    /// Image pixels per CSS pixel.
    pub scale: Scale,
    /// What the page learns about its visitor.
    pub appearance: Appearance,
    /// Wait until an element that matches this is visible.
    pub wait_for: Option<Selector>,
    /// Wait until no element that matches this is visible.
    pub wait_for_gone: Option<Selector>,
    /// What is changed in the page before the shot.
    pub changes: Changes,
    /// Quality of a lossy image in percent.
    pub quality: Option<u8>,
    /// Leave out the browser's white background.
    pub transparent: bool,
    /// Space around the element in CSS pixels.
    pub padding: u32,
    /// Height in CSS pixels at which a full page is cut.
    pub max_height: Option<u32>,
    /// The device that the page is shown on.
    pub device: Device,
    /// What the page may not load.
    pub blocking: Blocking,
    /// What is sent to the target only.
    pub secrets: Secrets,
    /// Run the page's scripts.
    pub javascript: bool,
    /// What is waited for.
    pub wait_until: WaitUntil,
    /// Time limit of the capture in the browser.
    pub timeout: Duration,
    /// Which statuses of the page are captured.
    pub statuses: StatusPolicy,
    /// The part of the page to capture instead of the viewport.
    pub clip: Option<ClipArea>,
    /// The size that the image is scaled down to.
    pub fit: Fit,
    /// What is stopped before the image is taken.
    pub freeze: Freeze,
    /// The attachments to make, in the order of [`FileKind::ALL`].
    pub also: Vec<FileKind>,
    /// How the PDF is laid out.
    pub pdf: PdfLayout,
    /// The largest age of an earlier image that may answer the request. Zero: none may.
    pub max_age: Duration,
    /// Texts of the caller.
    pub metadata: BTreeMap<String, String>,
    /// The largest height of the slices of the image, in image pixels. None: it has no slices.
    pub slice_height: Option<u32>,
    /// An earlier grab whose image is compared with that of this one.
    pub compare_to: Option<GrabId>,
    /// Compute the perceptual hash of the image.
    pub phash: bool,
    /// Further viewports that the page is captured in.
    pub viewports: Vec<Viewport>,
    /// Which part of the page its text and Markdown are.
    pub content: Content,
    /// CSS selectors of elements that are covered. Each must match something.
    pub mask: Vec<String>,
    /// What the page must show, or must not show.
    pub conditions: Conditions,
    /// Elements that are outlined in the image.
    pub highlight: Vec<Highlight>,
    /// How a smaller copy of the image is made. None: there is none.
    pub thumbnail: Option<Thumbnail>,
    /// The page of a PDF, from 1.
    pub pdf_page: u32,
    /// Make a signed package about the capture.
    pub evidence: bool,
    /// The proxy of the team that the page is loaded through.
    pub proxy: Option<ProxyId>,
    /// Long options that are no longer kept: their names, and the SHA-256 of their values. Empty unless it was stored.
    pub omitted: BTreeMap<String, String>,
    /// Names of members of the request that are no options. They do not change the image.
    pub unknown: Vec<String>,
    /// What does not count in the comparison with `compare_to`. A request cannot have it.
    pub tolerance: Tolerance,
}

/// What is changed in the page before the shot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Changes {
    /// CSS selectors of elements that are made invisible.
    pub hide: Vec<String>,
    /// CSS selectors of elements that are taken out of the layout.
    pub remove: Vec<String>,
    /// Further styles.
    pub css: Option<String>,
    /// CSS selectors of elements that are clicked, in this order.
    pub click: Vec<String>,
    /// JavaScript that is run in the page: the body of an async function.
    pub script: Option<String>,
}

impl CaptureSpec {
    /// Whether the image is a part of the page that the caller chose: an element or a rectangle.
    pub const fn is_part(&self) -> bool {
        self.selector.is_some() || self.clip.is_some()
    }

    /// Validates a request: the options in the order of their table, then their combinations. Whether the host is public
    /// is checked later, after the idempotency key ([`TargetUrl::check_public`]).
    ///
    /// # Errors
    /// The first invalid field, as [`Fault::BadRequest`] or [`Fault::InvalidViewport`].
    pub fn parse(request: &CaptureRequest) -> Result<Self, Fault> {
        let unparsed =
            |name: &str| request.unparsed.iter().find(|(field, _)| field == name).map(|(_, seen)| seen.as_str());
        if let Some(seen) = unparsed("body") {
            return Err(Fault::BadRequest(Field::new("body", seen, "a JSON object")));
        }
        let mut url = None;
        for option in TABLE {
            let fault = match option.name {
                "width" | "height" | "viewports" => Fault::InvalidViewport,
                _ => Fault::BadRequest,
            };
            if let Some(seen) = unparsed(option.name) {
                return Err(fault(Field::new(option.name, &option.seen(seen), option.kind.allowed())));
            }
            if let Some((member, seen)) = unparsed::member(request, option) {
                return Err(fault(unparsed::field(option.member_problem(member, seen))));
            }
            if let Some((seen, allowed)) = unparsed::part(request, option) {
                return Err(fault(Field::new(option.name, &option.seen(seen), allowed)));
            }
            if option.name == "url" {
                url = match (request.url.as_deref(), &request.html) {
                    (Some(text), None) => Some(TargetUrl::parse(text)?),
                    (None, Some(_)) => None,
                    (Some(_), Some(_)) => {
                        return Err(fault(Field::new("url", "", "left out where `html` is used")));
                    }
                    // Reported below.
                    (None, None) if unparsed("html").is_some() => None,
                    (None, None) => {
                        let allowed = "present: an absolute http(s) URL of a public address";
                        return Err(fault(Field::new("url", "", allowed)));
                    }
                };
            } else if let Some(value) = request.get(option.name) {
                combinations::check_value(option, &value).map_err(|problem| fault(unparsed::field(problem)))?;
            }
        }
        combinations::check(request)?;
        if let Some(seen) = unparsed("async") {
            return Err(Fault::BadRequest(Field::new("async", seen, "true, false, 1 or 0")));
        }
        let url = match url {
            Some(url) => url,
            None => base_url(request)?,
        };
        secrets::check(request, &url)?;
        Self::of_valid(url, request).ok_or(Fault::InternalError)
    }

    /// The spec of options that were checked before, such as those of [`Self::to_request`]. `None` if the URL is missing
    /// or an option has an impossible value.
    pub fn restore(request: &CaptureRequest) -> Option<Self> {
        Self::of_valid(TargetUrl::restore(request.url.as_deref()?)?, request)
    }

    fn of_valid(url: TargetUrl, request: &CaptureRequest) -> Option<Self> {
        let CaptureRequest {
            url: _,
            width,
            height,
            format,
            full_page,
            delay_ms,
            selector,
            scale,
            color_scheme: _,
            reduced_motion: _,
            media: _,
            locale: _,
            timezone: _,
            user_agent: _,
            wait_for,
            wait_for_gone,
            hide,
            remove,
            css,
            quality,
            transparent,
            padding,
            max_height,
            device,
            block_types,
            block_urls,
            headers: _,
            cookies: _,
            basic_auth: _,
            geolocation: _,
            javascript,
            wait_until,
            timeout_ms,
            fail_on_status,
            allow_blocked,
            clip,
            fit_width,
            fit_height,
            click,
            script,
            freeze,
            html: _,
            base_url: _,
            also,
            pdf,
            max_age,
            metadata,
            block,
            slice_height,
            compare_to,
            phash,
            viewports,
            upload_url: _,
            content,
            steps: _,
            mask,
            fail_if_selector: _,
            fail_if_text: _,
            wait_for_text: _,
            fail_if_blank: _,
            highlight,
            thumbnail,
            wait_for_expression: _,
            fail_on_request: _,
            wait_for_signal: _,
            pdf_page,
            freeze_all,
            vision: _,
            evidence,
            proxy,
            unparsed: _,
            unknown,
        } = request;
        let device = device.as_deref().map_or(Some(Device::Desktop), Device::parse)?;
        let (viewport, default_scale) = device.defaults();
        let pixels = |given: Option<i64>, default: u32| given.map_or(Some(default), |given| u32::try_from(given).ok());
        Some(Self {
            url,
            viewport: Viewport { width: pixels(*width, viewport.width)?, height: pixels(*height, viewport.height)? },
            format: format.as_deref().map_or(Some(Format::default()), Format::parse)?,
            full_page: full_page.unwrap_or(false),
            delay: Duration::from_millis(u64::try_from(delay_ms.unwrap_or(0)).ok()?),
            selector: selector.clone().map(Selector),
            scale: scale.map_or(Some(default_scale), Scale::new)?,
            appearance: Appearance::of(request)?,
            wait_for: wait_for.clone().map(Selector),
            wait_for_gone: wait_for_gone.clone().map(Selector),
            changes: Changes {
                hide: hide.clone().unwrap_or_default(),
                remove: remove.clone().unwrap_or_default(),
                css: css.clone(),
                click: click.clone().unwrap_or_default(),
                script: script.clone(),
            },
            quality: quality.map(u8::try_from).transpose().ok()?,
            transparent: transparent.unwrap_or(false),
            padding: u32::try_from(padding.unwrap_or(0)).ok()?,
            max_height: max_height.map(u32::try_from).transpose().ok()?,
            device,
            blocking: Blocking::of(block_types.as_deref(), block_urls.as_deref(), block.as_deref())?,
            secrets: Secrets::of(request)?,
            javascript: javascript.unwrap_or(true),
            wait_until: wait_until.as_deref().map_or(Some(WaitUntil::Auto), WaitUntil::parse)?,
            timeout: match timeout_ms {
                Some(timeout_ms) => Duration::from_millis(u64::try_from(*timeout_ms).ok()?),
                None => limits::RENDER_BUDGET,
            },
            statuses: StatusPolicy::new(fail_on_status.as_deref().unwrap_or_default(), allow_blocked.unwrap_or(false))?,
            clip: match clip {
                Some(rectangle) => Some(ClipArea::new(*rectangle)?),
                None => None,
            },
            fit: Fit {
                width: fit_width.map(u32::try_from).transpose().ok()?,
                height: fit_height.map(u32::try_from).transpose().ok()?,
            },
            freeze: Freeze::of(*freeze, *freeze_all),
            also: files::kinds(also.as_deref().unwrap_or_default())?,
            pdf: match pdf {
                Some(object) => PdfLayout::of(object)?,
                None => PdfLayout::default(),
            },
            max_age: Duration::from_secs(u64::try_from(max_age.unwrap_or(0)).ok()?),
            metadata: match metadata {
                Some(labels) => metadata::texts(labels)?,
                None => BTreeMap::new(),
            },
            slice_height: slice_height.map(u32::try_from).transpose().ok()?,
            compare_to: compare_to.as_deref().map(str::parse).transpose().ok()?,
            phash: phash.unwrap_or(false),
            viewports: viewports::read(viewports.as_deref().unwrap_or_default())?,
            content: content.as_deref().map_or(Some(Content::default()), Content::parse)?,
            mask: mask.clone().unwrap_or_default(),
            conditions: Conditions::of(request)?,
            highlight: highlight::read(highlight.as_deref().unwrap_or_default())?,
            thumbnail: match thumbnail {
                Some(object) => Some(Thumbnail::of(object)?),
                None => None,
            },
            pdf_page: u32::try_from(pdf_page.unwrap_or(1)).ok()?,
            evidence: evidence.unwrap_or(false),
            proxy: proxy.as_deref().map(str::parse).transpose().ok()?,
            omitted: BTreeMap::new(),
            unknown: unknown::shortened(unknown.iter().map(String::as_str)),
            tolerance: Tolerance::default(),
        })
    }

    /// Whether a document of the caller is captured, instead of one at the URL.
    pub fn has_own_document(&self) -> bool {
        self.secrets.given().contains(&"html")
    }

    /// The same spec without the values of its secret options: as it is stored, listed and shown.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        Self { secrets: self.secrets.withheld(), ..self.clone() }
    }

    /// The secret options with their values, which are not in the stored form. Empty if there are none.
    pub fn secret_options(&self) -> BTreeMap<String, Value> {
        let request = self.to_request();
        let secret = TABLE.iter().filter(|option| option.is_secret);
        secret.filter_map(|option| Some((option.name.to_owned(), request.get(option.name)?))).collect()
    }

    /// The spec with the values of its secret options. None if they are not those of [`Self::secret_options`].
    #[must_use]
    pub fn with_secrets(&self, secrets: BTreeMap<String, Value>) -> Option<Self> {
        let mut request = self.to_request();
        for (name, value) in secrets {
            if !grabd_options::find(&name).is_some_and(|option| option.is_secret) || !request.set(&name, value) {
                return None;
            }
        }
        Some(Self { secrets: Secrets::of(&request)?, ..self.clone() })
    }

    /// The options as a request. The contract's first options are always set, later ones only if they differ from their
    /// defaults. Secret options are set if their values are known.
    pub fn to_request(&self) -> CaptureRequest {
        let Self {
            url,
            viewport,
            format,
            full_page,
            delay,
            selector,
            scale,
            appearance,
            wait_for,
            wait_for_gone,
            changes: Changes { hide, remove, css, click, script },
            quality,
            transparent,
            padding,
            max_height,
            device,
            blocking,
            secrets,
            javascript,
            wait_until,
            timeout,
            statuses,
            clip,
            fit,
            freeze,
            also,
            pdf,
            max_age,
            metadata,
            slice_height,
            compare_to,
            phash,
            viewports,
            content,
            mask,
            conditions:
                Conditions {
                    fail_if_selector,
                    fail_if_text,
                    wait_for_text,
                    fail_if_blank,
                    wait_for_expression,
                    fail_on_request,
                    wait_for_signal,
                },
            highlight,
            thumbnail,
            pdf_page,
            evidence,
            proxy,
            omitted: _,
            unknown: _,
            tolerance: _,
        } = self;
        let text = |selector: &Option<Selector>| selector.as_ref().map(|selector| selector.as_str().to_owned());
        let list = |texts: &Vec<String>| (!texts.is_empty()).then(|| texts.clone());
        CaptureRequest {
            url: Some(url.as_str().to_owned()),
            width: Some(viewport.width.into()),
            height: Some(viewport.height.into()),
            format: Some(format.as_str().to_owned()),
            full_page: Some(*full_page),
            delay_ms: i64::try_from(delay.as_millis()).ok(),
            selector: text(selector),
            scale: (*scale != device.defaults().1).then(|| scale.factor()),
            color_scheme: appearance.is_dark.then(|| "dark".to_owned()),
            reduced_motion: appearance.reduced_motion.then_some(true),
            media: appearance.is_print.then(|| "print".to_owned()),
            locale: appearance.locale.clone(),
            timezone: appearance.timezone.clone(),
            user_agent: appearance.user_agent.clone(),
            wait_for: text(wait_for),
            wait_for_gone: text(wait_for_gone),
            hide: list(hide),
            remove: list(remove),
            css: css.clone(),
            quality: quality.map(i64::from),
            transparent: transparent.then_some(true),
            padding: (*padding > 0).then(|| (*padding).into()),
            max_height: max_height.map(i64::from),
            device: (*device != Device::Desktop).then(|| device.as_str().to_owned()),
            block_types: list(&blocking.types.iter().map(|of| of.as_str().to_owned()).collect()),
            block_urls: list(&blocking.urls),
            headers: secrets.headers_option(),
            cookies: secrets.cookies_option(),
            basic_auth: secrets.basic_auth_option(),
            geolocation: appearance.geolocation.map(Geolocation::to_object),
            javascript: (!javascript).then_some(false),
            wait_until: (*wait_until != WaitUntil::Auto).then(|| wait_until.as_str().to_owned()),
            timeout_ms: match *timeout == limits::RENDER_BUDGET {
                true => None,
                false => i64::try_from(timeout.as_millis()).ok(),
            },
            fail_on_status: list(&statuses.fail_on()),
            allow_blocked: statuses.allows_blocked().then_some(true),
            clip: clip.map(ClipArea::to_rectangle),
            fit_width: fit.width.map(i64::from),
            fit_height: fit.height.map(i64::from),
            click: list(click),
            script: script.clone(),
            freeze: (*freeze == Freeze::Motion).then_some(true),
            // The URL of a document of the caller is its base URL.
            html: secrets.html_option(),
            base_url: None,
            also: list(&also.iter().map(|kind| kind.as_str().to_owned()).collect()),
            pdf: Some(pdf.to_object()).filter(|object| !object.is_empty()),
            max_age: i64::try_from(max_age.as_secs()).ok().filter(|seconds| *seconds > 0),
            metadata: metadata::labels(metadata),
            block: list(&blocking.contents.iter().map(|of| of.as_str().to_owned()).collect()),
            slice_height: slice_height.map(i64::from),
            compare_to: compare_to.map(|grab| grab.to_string()),
            phash: phash.then_some(true),
            viewports: viewports::to_objects(viewports),
            upload_url: secrets.upload_url_option(),
            steps: secrets.steps_option(),
            content: (*content != Content::default()).then(|| content.as_str().to_owned()),
            mask: list(mask),
            fail_if_selector: text(fail_if_selector),
            fail_if_text: fail_if_text.clone(),
            wait_for_text: wait_for_text.clone(),
            fail_if_blank: fail_if_blank.then_some(true),
            highlight: highlight::to_objects(highlight),
            thumbnail: thumbnail.map(Thumbnail::to_object),
            wait_for_expression: wait_for_expression.clone(),
            fail_on_request: request_rules::to_objects(fail_on_request),
            wait_for_signal: wait_for_signal.then_some(true),
            pdf_page: (*pdf_page > 1).then(|| (*pdf_page).into()),
            freeze_all: (*freeze == Freeze::All).then_some(true),
            vision: appearance.vision.map(|vision| vision.as_str().to_owned()),
            evidence: evidence.then_some(true),
            proxy: proxy.map(|proxy| proxy.to_string()),
            unparsed: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// The shortest request for this spec, without options that have their default.
    pub fn to_minimal_request(&self) -> CaptureRequest {
        let (viewport, _) = self.device.defaults();
        let CaptureRequest { url, width, height, format, full_page, delay_ms, .. } = self.to_request();
        let (url, base_url) = if self.has_own_document() { (None, url) } else { (url, None) };
        CaptureRequest {
            url,
            base_url: base_url.filter(|url| url != DEFAULT_BASE_URL),
            width: width.filter(|_| self.viewport.width != viewport.width),
            height: height.filter(|_| self.viewport.height != viewport.height),
            format: format.filter(|_| self.format != Format::default()),
            full_page: full_page.filter(|full_page| *full_page),
            delay_ms: delay_ms.filter(|delay_ms| *delay_ms > 0),
            ..self.to_request()
        }
    }

    /// The height a grab reports: the height of the viewport, or the constant of the contract for a full page.
    pub const fn reported_height(&self) -> u32 {
        match self.full_page {
            true => limits::FULL_PAGE_REPORTED_HEIGHT,
            false => self.viewport.height(),
        }
    }
}

/// The URL of a document of the caller that has none. The name is reserved, so nothing is ever loaded from it.
const DEFAULT_BASE_URL: &str = "https://html.example/";

/// The URL of a document of the caller.
fn base_url(request: &CaptureRequest) -> Result<TargetUrl, Fault> {
    let text = request.base_url.as_deref().unwrap_or(DEFAULT_BASE_URL);
    TargetUrl::parse(text).map_err(|fault| fault.renamed("base_url"))
}

#[cfg(test)]
mod tests;
