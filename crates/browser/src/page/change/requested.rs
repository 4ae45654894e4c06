//! Applies the capture options that change the page: what it learns about its visitor, what is waited for, and what is
//! changed before the capture.

use chromiumoxide::cdp::browser_protocol::browser::{PermissionDescriptor, PermissionSetting, SetPermissionParams};
use chromiumoxide::cdp::browser_protocol::dom::Rgba;
use chromiumoxide::cdp::browser_protocol::emulation::{
    MediaFeature, SetDefaultBackgroundColorOverrideParams, SetEmulatedMediaParams, SetEmulatedVisionDeficiencyParams,
    SetEmulatedVisionDeficiencyType, SetGeolocationOverrideParams, SetLocaleOverrideParams,
    SetScriptExecutionDisabledParams, SetTimezoneOverrideParams, SetTouchEmulationEnabledParams,
    SetUserAgentOverrideParams,
};
use chromiumoxide::cdp::browser_protocol::network::{CookieParam, CookieSameSite, SetCookiesParams, TimeSinceEpoch};
use grabd_domain::capture::{Appearance, CaptureSpec, Changes, Cookie, DeviceSystem, SameSite, Selector, Vision};
use serde::{Deserialize, Serialize};

use crate::cdp::CallError;
use crate::page::change::{hiding, steps};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::identity::accept_language;
use crate::page::script::millis_until;
use crate::page::selectors;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitArguments<'a> {
    selector: &'a str,
    is_gone: bool,
    budget_ms: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WaitProblem {
    Invalid,
    Timeout,
}

#[derive(Deserialize)]
struct WaitResult {
    problem: Option<WaitProblem>,
}

#[derive(Serialize)]
struct ChangeArguments<'a> {
    hide: &'a [String],
    remove: &'a [String],
    css: Option<&'a str>,
}

/// A selector that is not valid, and its option.
#[derive(Deserialize)]
struct InvalidSelector {
    option: String,
    selector: String,
}

#[derive(Deserialize)]
struct ChangeResult {
    invalid: Option<InvalidSelector>,
}

/// The media type and the preferences that the page sees. Without the type, a PDF would have the styles for printing.
pub(in crate::page) fn emulated_media(spec: &CaptureSpec) -> SetEmulatedMediaParams {
    let Appearance { is_dark, reduced_motion, is_print, .. } = &spec.appearance;
    let is_still = *reduced_motion || spec.freeze.stops_motion();
    let scheme = MediaFeature::new("prefers-color-scheme", if *is_dark { "dark" } else { "light" });
    let motion = MediaFeature::new("prefers-reduced-motion", if is_still { "reduce" } else { "no-preference" });
    let media = if *is_print { "print" } else { "screen" };
    SetEmulatedMediaParams { media: Some(media.to_owned()), features: Some(vec![scheme, motion]) }
}

/// Sets what the page learns about its visitor, before the navigation. Every answer is waited for: a navigation to another
/// process takes over only what the page's process has confirmed.
///
/// # Errors
/// If the browser refuses a value.
pub(in crate::page) async fn set_appearance(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    let (client, session) = (&context.tab.client, Some(context.tab.session.as_str()));
    let Appearance { is_dark, reduced_motion, is_print, locale, timezone, user_agent, geolocation, vision } =
        &context.spec.appearance;
    if *is_dark || *reduced_motion || *is_print || context.spec.freeze.stops_motion() {
        client.call(session, emulated_media(context.spec)).await?;
    }
    if let Some(vision) = vision {
        client.call(session, SetEmulatedVisionDeficiencyParams::new(deficiency(*vision))).await?;
    }
    if context.spec.transparent {
        let color = Rgba { r: 0, g: 0, b: 0, a: Some(0.0) };
        client.call(session, SetDefaultBackgroundColorOverrideParams { color: Some(color) }).await?;
    }
    if !context.spec.javascript {
        // Our own scripts still run: the browser evaluates them for DevTools.
        client.call(session, SetScriptExecutionDisabledParams::new(true)).await?;
    }
    if let Some(timezone) = timezone {
        let set = client.call(session, SetTimezoneOverrideParams::new(timezone.clone())).await;
        refused_as(set, || format!("The browser does not know the time zone `{timezone}`."))?;
    }
    if let Some(locale) = locale {
        let locale = SetLocaleOverrideParams { locale: Some(locale.replace('-', "_")) };
        let set = client.call(session, locale).await;
        refused_as(set, || "The browser does not know this `locale`.".to_owned())?;
    }
    let device = context.spec.device;
    if device.is_mobile() {
        let touch =
            SetTouchEmulationEnabledParams { max_touch_points: Some(5), ..SetTouchEmulationEnabledParams::new(true) };
        client.call(session, touch).await?;
    }
    if user_agent.is_some() || locale.is_some() || device.system() != DeviceSystem::Own {
        let overridden = match user_agent {
            // Without client hints, which would contradict it.
            Some(user_agent) => SetUserAgentOverrideParams::new(user_agent.clone()),
            None => context.tab.identity.on(device),
        };
        let accept_language = Some(accept_language(locale.as_deref()));
        client.call(session, SetUserAgentOverrideParams { accept_language, ..overridden }).await?;
    }
    if let Some(position) = geolocation {
        let position = SetGeolocationOverrideParams::builder()
            .latitude(position.latitude())
            .longitude(position.longitude())
            .accuracy(position.accuracy())
            .build();
        client.call(session, position).await?;
        // The context is disposed with the grab, and with it the permission.
        let granted = SetPermissionParams {
            browser_context_id: Some(context.tab.context.clone()),
            ..SetPermissionParams::new(PermissionDescriptor::new("geolocation"), PermissionSetting::Granted)
        };
        client.call(None, granted).await?;
    }
    Ok(())
}

/// What the browser calls a vision deficiency.
fn deficiency(vision: Vision) -> SetEmulatedVisionDeficiencyType {
    match vision {
        Vision::Deuteranopia => SetEmulatedVisionDeficiencyType::Deuteranopia,
        Vision::Protanopia => SetEmulatedVisionDeficiencyType::Protanopia,
        Vision::Tritanopia => SetEmulatedVisionDeficiencyType::Tritanopia,
        Vision::Achromatopsia => SetEmulatedVisionDeficiencyType::Achromatopsia,
        Vision::BlurredVision => SetEmulatedVisionDeficiencyType::BlurredVision,
        Vision::ReducedContrast => SetEmulatedVisionDeficiencyType::ReducedContrast,
    }
}

/// Sets which requests are blocked and what is sent to the target, before the navigation.
///
/// # Errors
/// If the browser refuses a cookie.
pub(in crate::page) async fn set_network(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    context.interception.apply(context.tab, false).await?;
    let cookies = &context.spec.secrets.cookies;
    if !cookies.is_empty() {
        let cookies = cookies.iter().map(|cookie| cookie_param(cookie, context.spec.url.as_str())).collect();
        let set = context.tab.client.call(Some(&context.tab.session), SetCookiesParams::new(cookies)).await;
        refused_as(set, || "The browser does not accept one of the `cookies`.".to_owned())?;
    }
    Ok(())
}

fn cookie_param(cookie: &Cookie, url: &str) -> CookieParam {
    let Cookie { name, value, domain, path, secure, http_only, same_site, expires } = cookie;
    CookieParam {
        // A cookie without a domain is for the host of this URL only.
        url: Some(url.to_owned()),
        domain: domain.clone(),
        path: Some(path.clone().unwrap_or_else(|| "/".to_owned())),
        secure: Some(*secure),
        http_only: Some(*http_only),
        same_site: same_site.map(|of| match of {
            SameSite::Strict => CookieSameSite::Strict,
            SameSite::Lax => CookieSameSite::Lax,
            SameSite::None => CookieSameSite::None,
        }),
        #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 seconds")]
        expires: expires.map(|seconds| TimeSinceEpoch::new(seconds as f64)),
        ..CookieParam::new(name, value)
    }
}

/// Waits for the elements that the caller names to appear, and to disappear. Returns whether there are any.
///
/// # Errors
/// If one does not appear, or does not disappear, in time.
pub(in crate::page) async fn wait_for_elements(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let CaptureSpec { wait_for, wait_for_gone, .. } = context.spec;
    // A click has led to another page: the elements were waited for on the former one.
    if context.interactions.have_begun() {
        return Ok(false);
    }
    for (selector, is_gone) in [(wait_for, false), (wait_for_gone, true)] {
        if let Some(selector) = selector {
            wait(context, selector, is_gone).await?;
        }
    }
    Ok(wait_for.is_some() || wait_for_gone.is_some())
}

/// Hides and removes the elements that the caller names, and adds the caller's styles. Returns whether there are any.
///
/// # Errors
/// If a selector is not valid: the elements that it is meant for would stay in the image.
pub(in crate::page) async fn apply_changes(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let Changes { hide, remove, css, click: _, script: _ } = &context.spec.changes;
    if hide.is_empty() && remove.is_empty() && css.is_none() {
        return Ok(false);
    }
    let changes = ChangeArguments { hide, remove, css: css.as_deref() };
    let applied = context.call_script::<ChangeResult>("applyChanges", &changes).await?;
    match applied.and_then(|applied| applied.invalid) {
        None => Ok(true),
        Some(InvalidSelector { option, selector }) => {
            Err(CaptureError::failed(format!("`{option}` \"{selector}\" is not a valid CSS selector.")))
        }
    }
}

/// Hides and removes elements again that the page shows nevertheless, also those that filter lists name. Called before an image is
/// taken; until then, what the page's scripts show again is hidden at once.
///
/// # Errors
/// If some of those stay visible that the caller names.
pub(in crate::page) async fn enforce_changes(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    fail_if_shown(context, "enforceChanges").await
}

/// Checks after an image was taken that it shows nothing that is hidden or removed.
///
/// # Errors
/// If one of the elements is visible.
pub(in crate::page) async fn check_changes(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    fail_if_shown(context, "checkChanges").await
}

/// Calls this function, which returns the number of elements that are visible although they are to be hidden or removed.
async fn fail_if_shown(context: &CaptureContext<'_>, function: &str) -> Result<(), CaptureError> {
    let Changes { hide, remove, .. } = &context.spec.changes;
    if hide.is_empty() && remove.is_empty() && hiding::lists(context).is_none() {
        return Ok(());
    }
    match context.call_script::<u32>(function, &()).await? {
        None | Some(0) => Ok(()),
        Some(count) => Err(CaptureError::failed(format!(
            "The page still shows {count} of the elements that `hide` and `remove` match."
        ))),
    }
}

async fn wait(context: &CaptureContext<'_>, selector: &Selector, is_gone: bool) -> Result<(), CaptureError> {
    let _fast = context.clock.draw_fast();
    let (name, selector) = (if is_gone { "wait_for_gone" } else { "wait_for" }, selector.as_str());
    selectors::prepare(context, selector).await?;
    let budget_ms = millis_until(context.capture_by);
    let waited = context.call_script::<WaitResult>("waitFor", &WaitArguments { selector, is_gone, budget_ms }).await?;
    match waited.and_then(|waited| waited.problem) {
        None => Ok(()),
        Some(WaitProblem::Invalid) if !is_gone && selector.contains(steps::FRAME_SEPARATOR) => {
            steps::wait_in_frame(context, name, selector).await
        }
        Some(WaitProblem::Invalid) => {
            Err(CaptureError::failed(format!("`{name}` \"{selector}\" is not a valid CSS selector.")))
        }
        Some(WaitProblem::Timeout) if is_gone => {
            Err(CaptureError::failed(format!("`{name}` \"{selector}\" did not go in time.")))
        }
        Some(WaitProblem::Timeout) => {
            Err(CaptureError::failed(format!("`{name}` \"{selector}\" did not appear in time.")))
        }
    }
}

fn refused_as<T>(result: Result<T, CallError>, message: impl FnOnce() -> String) -> Result<(), CaptureError> {
    match result {
        Ok(_) => Ok(()),
        Err(CallError::Refused { .. }) => Err(CaptureError::failed(message())),
        Err(error) => Err(error.into()),
    }
}
