//! The whole capture of one grab: what is done in which order, and what ends it.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::{HandleJavaScriptDialogParams, Viewport as Clip};
use grabd_domain::capture::{FileKind, WaitUntil};
use grabd_domain::grabs::{Findings, RenderMetadata, SettledBy, Stage, Timings, Warning};
use grabd_domain::render::{Capture, RenderTask};
use tokio::time::Instant;

use crate::cdp::PausedRequest;
use crate::page::capture_limits::Limits;
use crate::page::change::{conditions, consent, fixed_clock, freeze, hiding, interact, requested, steps};
use crate::page::context::CaptureContext;
use crate::page::error::{CaptureError, UNRESPONSIVE};
use crate::page::findings::metadata::About;
use crate::page::findings::state::PageState;
use crate::page::findings::{extract, metadata, report, verdict};
use crate::page::load::clock::TimeMode;
use crate::page::load::settle::{self, Ready, Settled};
use crate::page::load::watch::{Document, Excess, Gone, REQUESTER_WAIT, WatchState};
use crate::page::load::{navigate, outside, pdf_target, through_proxy, workers};
use crate::page::picture::shown::ImageSize;
use crate::page::picture::{area, looks, shot, slices, viewports};
use crate::page::tab::Tab;

/// The interval of checks whether a page that starts many workers has started all of them.
const WORKER_CHECK: Duration = Duration::from_millis(20);

/// Dialogs that are dismissed before the capture fails.
const MAX_DIALOGS: u32 = 10;

/// Captures what `task` requests, in a tab that is used for nothing else. The caller cancels it at `deadline`.
///
/// Cancel-safe: it owns nothing, and the caller disposes of the tab.
pub(crate) async fn capture(
    tab: &Tab,
    task: &RenderTask,
    limits: Limits,
    time: TimeMode,
    deadline: Instant,
) -> Result<Capture, CaptureError> {
    let context = CaptureContext::new(tab, task, limits, time, deadline);
    tab.watch.reset();
    if context.interception.has_headers() {
        tab.watch.start_requesters();
    }
    context.stages.reach(Stage::Navigating);
    let is_archived = task.spec.also.contains(&FileKind::Har);
    if is_archived || task.spec.has_report() {
        tab.watch.start_record(is_archived);
    }
    if !task.spec.conditions.fail_on_request.is_empty() {
        tab.watch.start_failing(&task.spec.conditions.fail_on_request);
    }
    let mut events = std::pin::pin!(handle_events(&context));
    let captured = tokio::select! {
        biased;
        ended = &mut events => Err(ended),
        captured = take_steps(&context) => match captured {
            // The errors of a page that is gone result from its end.
            Err(_) if tab.watch.read(|seen| seen.gone.is_some()) => Err(events.await),
            // A document without content is never drawn, and answers no script.
            Err(error) if error.is_unresponsive() => Err(no_content(tab).unwrap_or(error)),
            captured => captured,
        },
        ended = context.clock.run() => Err(ended),
    };
    through_proxy::with_proxy_failure(&context, captured)
}

/// The failure of a document of which nothing came but its header fields.
fn no_content(tab: &Tab) -> Option<CaptureError> {
    let document = tab.watch.read(|seen| seen.document.clone().filter(|_| seen.has_no_content()));
    document.map(|document| verdict::no_content_failure(&document).into())
}

/// Answers dialogs and paused requests. Returns when the page exceeds a limit, or when the page or the
/// browser is gone.
async fn handle_events(context: &CaptureContext<'_>) -> CaptureError {
    enum Action {
        Excess(Excess),
        Dialog { leave: bool, count: u32 },
        Paused(PausedRequest),
        Worker(String),
        WorkersStarting,
        Gone(Gone),
    }
    let clock_program = fixed_clock::program(context.spec);
    let watch = async {
        loop {
            // A paused request may have to be answered although no further event comes.
            let wake_at = context.deadline.min(Instant::now() + REQUESTER_WAIT);
            let action = context.tab.watch.until(wake_at, |seen| match (seen.gone, seen.excess) {
                (Some(gone), _) => Some(Action::Gone(gone)),
                (None, Some(excess)) => Some(Action::Excess(excess)),
                (None, None) => seen
                    .take_dialog()
                    .map(|leave| Action::Dialog { leave, count: seen.dialogs })
                    .or_else(|| seen.take_unwatched_worker(Instant::now()).map(Action::Worker))
                    .or_else(|| seen.take_paused(Instant::now()).map(Action::Paused))
                    .or_else(|| seen.workers_are_starting(Instant::now()).then_some(Action::WorkersStarting)),
            });
            match action.await {
                Some(Action::Excess(Excess::Bytes)) => break CaptureError::over_limit(),
                Some(Action::Excess(Excess::Workers)) => {
                    break CaptureError::failed("The page starts more workers than a capture may.");
                }
                Some(Action::Dialog { count, .. }) if count > MAX_DIALOGS => {
                    break CaptureError::failed("The page opens one dialog after another.");
                }
                Some(Action::Dialog { leave, .. }) => {
                    // Accept leaving the page; cancel all other dialogs.
                    let answer = HandleJavaScriptDialogParams::new(leave);
                    context.tab.client.tell(Some(&context.tab.session), &answer);
                }
                // Their number may exceed the limit meanwhile, which must not wait.
                Some(Action::WorkersStarting) => {
                    let has_ended =
                        |seen: &mut WatchState| (seen.gone.is_some() || seen.excess.is_some()).then_some(());
                    context.tab.watch.until(Instant::now() + WORKER_CHECK, has_ended).await;
                }
                Some(Action::Worker(session)) => workers::watch(context.tab, session, clock_program.as_deref()).await,
                Some(Action::Paused(request)) => context.interception.answer(context.tab, request).await,
                Some(Action::Gone(gone)) => break explain_end(context, gone).await,
                None if Instant::now() < context.deadline => {}
                // The caller ends the capture at the same deadline.
                None => std::future::pending().await,
            }
        }
    };
    tokio::select! {
        () = context.tab.client.closed().cancelled() => CaptureError::Lost("the browser died".into()),
        ended = watch => ended,
    }
}

async fn explain_end(context: &CaptureContext<'_>, gone: Gone) -> CaptureError {
    let closed = context.tab.client.closed().cancelled();
    match (tokio::time::timeout(navigate::CLOSE_DELAY, closed).await, gone) {
        (Ok(()), _) => CaptureError::Lost("the browser died".into()),
        // The page's process died, which need not be the page's fault: the kernel kills one of several when memory
        // is short. In a dedicated browser, the page is the cause.
        (Err(_), Gone::Crashed) => CaptureError::Lost("the page's process died".into()),
        (Err(_), Gone::Closed) => CaptureError::failed("The page closed itself."),
    }
}

/// Runs the steps. Those after the navigation are run again for every document that replaces another.
async fn take_steps(context: &CaptureContext<'_>) -> Result<Capture, CaptureError> {
    requested::set_appearance(context).await?;
    requested::set_network(context).await?;
    interact::listen_for_signal(context).await?;
    freeze::prepare(context).await?;
    if context.spec.has_report() {
        report::enable(context).await?;
    }
    navigate::navigate(context).await?;
    loop {
        let document = navigate::document(context).await?;
        if context.unless_replaced(&document, pdf_target::draw(context)).await?.is_none() {
            continue;
        }
        let has_real_time = !context.clock.has_advanced();
        let late = Ready { by: SettledBy::Deadline, state: PageState::default() };
        let mut ready = match context.is_late() {
            true => late,
            false => match settle::settle(context, &document).await? {
                Settled::Ready(ready) => ready,
                Settled::Left => continue,
            },
        };
        // Before the page is changed, or scrolled through.
        report::read_vitals(context, has_real_time).await;
        context.tab.watch.set_challenge(ready.state.challenge);
        if ready.state.challenge.is_some() && !context.spec.statuses.allows_blocked() {
            return Err(verdict::challenge_failure(&document).into());
        }
        if context.tab.watch.read(|seen| seen.navigation_blocked) {
            // A page whose navigation was blocked did not settle by itself.
            ready.by = SettledBy::Deadline;
        }
        let Some(is_changed) = context.unless_replaced(&document, wait_and_change(context)).await? else {
            continue;
        };
        if is_changed {
            let Some(state) = context.unless_replaced(&document, settle::read_state(context)).await? else { continue };
            ready.state = state.unwrap_or_default();
        }
        if !context.spec.delay.is_zero() {
            let delayed = (Instant::now() + context.spec.delay).min(context.capture_by);
            if !settle::stay_until(context, &document, delayed).await {
                continue;
            }
            let Some(state) = context.unless_replaced(&document, settle::read_state(context)).await? else { continue };
            ready.state = state.unwrap_or_default();
        }
        if let Some(image) = take_image(context, &document, ready).await? {
            return Ok(image);
        }
    }
}

/// Removes consent dialogs and the places of ads, waits for what was asked for, makes the caller's changes, clicks and steps,
/// runs the caller's script, and waits until the page has settled again. Returns whether anything was requested.
///
/// # Errors
/// If an element does not appear, or does not disappear, in time, if nothing can be clicked, if a step cannot be done, or if the
/// script throws.
async fn wait_and_change(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    // First: a dialog may cover what is clicked.
    let has_consented = consent::handle(context).await?;
    // A page that is still busy is stopped before its image is taken, and its elements are hidden then.
    let has_hidden = !context.is_late() && hiding::apply(context).await?;
    let mut has_waited = requested::wait_for_elements(context).await?;
    has_waited |= conditions::wait_for_text(context).await?;
    has_waited |= interact::wait_for_expression(context).await?;
    has_waited |= interact::wait_for_signal(context).await?;
    let has_changed = requested::apply_changes(context).await?;
    // Every click and every step is followed by its own wait.
    let has_clicked = interact::click_all(context).await?;
    let has_clicked = steps::take_all(context).await? || has_clicked;
    let has_run = interact::run_script(context).await?;
    let is_unsettled = has_run || (!has_clicked && (has_waited || has_changed || has_consented || has_hidden));
    if is_unsettled {
        settle::settle_again(context).await?;
    }
    Ok(is_unsettled || has_clicked)
}

/// Takes the image, unless the document is replaced meanwhile.
async fn take_image(
    context: &CaptureContext<'_>,
    document: &Document,
    ready: Ready,
) -> Result<Option<Capture>, CaptureError> {
    if context.is_late() && !navigate::stop(context, document).await? {
        return Ok(None);
    }
    // Check first: a rejected document needs no image.
    navigate::check_current(context, document)?;
    let Ready { by, state } = ready;
    match context.unless_replaced(document, looks::prepare(context)).await? {
        Some(true) => {}
        Some(false) => return unless_leaving(context, document).await,
        None => return Ok(None),
    }
    // Before the page is laid out for the image, and for what began to move meanwhile again.
    if context.unless_replaced(document, freeze::apply(context, freeze::FIRST_PHASE)).await?.is_none() {
        return Ok(None);
    }
    // What was added since the page had settled: after a click, for example.
    if context.unless_replaced(document, hiding::apply(context)).await?.is_none() {
        return Ok(None);
    }
    let found = context.unless_replaced(document, area::find(context, state)).await?;
    let Some(area) = found else { return Ok(None) };
    let Some(area) = context.unless_replaced(document, area::fit(context, area)).await? else { return Ok(None) };
    let prepared = context.unless_replaced(document, prepare_image(context, area.clip.as_ref())).await?;
    let about = match prepared {
        Some(Some(prepared)) => prepared,
        Some(None) => return unless_leaving(context, document).await,
        None => return Ok(None),
    };
    let shot_at = Instant::now();
    // Content out of view is not missing, and what arrives from now on is not in the image.
    if context.tab.watch.read(|seen| seen.requests.unsettled(Instant::now())) > 0 {
        settle::ignore_hidden_requests(context).await;
    }
    let unsettled = context.tab.watch.read(|seen| seen.requests.unsettled(Instant::now()));
    let most = context.limits.image_max_bytes;
    let for_slices = slices::memory_bytes(context.spec, shot::max_size(context.spec, area.clip.as_ref()), most);
    let for_viewports = viewports::memory_bytes(context.spec, most);
    let for_files = extract::memory_bytes(context.spec).saturating_add(for_slices).saturating_add(for_viewports);
    let taken = async {
        let taken = tokio::try_join!(shot::take(context, &area, for_files), uses_storage(context, &area.state))?;
        requested::check_changes(context).await?;
        Ok((taken, looks::end(context).await?))
    };
    let (shot, must_repeat) = match context.unless_replaced(document, taken).await? {
        Some(((shot, uses_storage), is_certain)) => (Some(shot), uses_storage || !is_certain),
        None => (None, false),
    };
    let shot = match shot {
        Some(Some(shot)) => shot,
        Some(None) => {
            navigate::wait_for_replacement(context, document).await;
            return Ok(None);
        }
        None => return Ok(None),
    };
    if context.is_replaced(document) {
        return Ok(None);
    }
    if must_repeat {
        // It began to use its storage in the last moment of its virtual time, or does not say whether its masks hold.
        return Ok(None);
    }
    navigate::check_current(context, document)?;
    // Until now, the answer of another request may have come.
    conditions::check_requests(context)?;
    context.stages.reach(Stage::Captured);
    let is_quiet = by == SettledBy::Quiet && !area.is_incomplete && unsettled == 0;
    let is_listed = |url: &str| context.is_listed(url);
    let state = area.state.without_blocked(&context.spec.blocking, is_listed, context.interception.blocked_fonts());
    context.tab.watch.set_challenge(state.challenge);
    let known = metadata::of_tab(context.tab);
    let fails_if_blank = context.spec.conditions.fail_if_blank;
    let has_one_colour = (fails_if_blank || !area.may_be_plain) && shot.has_one_colour().await;
    if has_one_colour && fails_if_blank {
        return Err(conditions::blank_failure());
    }
    let is_blank = has_one_colour && !area.may_be_plain;
    if is_blank && about.timed_out {
        // The page is busy without end, and at most its background was drawn.
        return Err(CaptureError::failed(UNRESPONSIVE));
    }
    let mut warnings = state.warnings(unsettled);
    if is_blank {
        warnings.push(Warning::Blank);
    }
    if context.tab.watch.read(|seen| seen.is_cut || !(seen.is_received || seen.parsed_at.is_some())) {
        warnings.push(Warning::DocumentIncomplete);
    }
    warnings.extend(area.warnings);
    warnings.extend((about.glyphs_missing > 0).then_some(Warning::GlyphsMissing(about.glyphs_missing)));
    if !shot.frames_painted && !warnings.contains(&Warning::FrameUnfinished) {
        warnings.push(Warning::FrameUnfinished);
    }
    let denied = context.interception.denied_documents();
    warnings.extend((denied > 0).then_some(Warning::DocumentsDenied(denied)));
    let mut metadata = RenderMetadata {
        settled_by: Some(if is_quiet { SettledBy::Quiet } else { SettledBy::Deadline }),
        image_width: Some(shot.width),
        image_height: Some(shot.height),
        truncated: area.truncated,
        warnings,
        page: about.page,
        timings: Some(timings(context, shot_at)),
        findings: Findings { blank: Some(is_blank), consent: context.consent.result(), ..known.findings },
        ..known
    };
    // The image must not be kept if the document is replaced: its files would be those of another one.
    let shown = (ImageSize { width: shot.width, height: shot.height }, area.clip.as_ref());
    let mut memory = shot.for_files;
    let attachments = async {
        let slices = slices::make(context, &shot.image, shown, &mut memory).await?;
        Ok((extract::files(context, shown, &mut memory, &mut metadata).await?, slices))
    };
    let Some((files, slices)) = context.unless_replaced(document, attachments).await? else { return Ok(None) };
    // Last: they change the layout of the page.
    let viewports = viewports::take(context, document, &mut memory).await?;
    let execution_ms = millis_between(context.began, Instant::now());
    let step_images = context.step_images.images();
    Ok(Some(Capture { image: shot.image, metadata, execution_ms, files, slices, viewports, step_images }))
}

/// The failure of a document that does not answer before its image is taken, unless it is about to be replaced.
async fn unless_leaving(context: &CaptureContext<'_>, document: &Document) -> Result<Option<Capture>, CaptureError> {
    navigate::wait_for_replacement(context, document).await;
    match context.is_replaced(document) {
        true => Ok(None),
        false => Err(CaptureError::failed("The page did not answer before its image was taken.")),
    }
}

/// Stops what moves, checks that the page is one that the caller accepts, applies the caller's changes again, reads what
/// [`metadata::about`] returns, and draws what `mask` and `highlight` ask for. Returns `None` if the page does not answer.
async fn prepare_image(context: &CaptureContext<'_>, clip: Option<&Clip>) -> Result<Option<About>, CaptureError> {
    freeze::apply(context, freeze::IMAGE_PHASE).await?;
    if !conditions::check(context).await? {
        return Ok(None);
    }
    requested::enforce_changes(context).await?;
    let about = metadata::about(context, clip).await?;
    Ok(looks::begin(context, clip).await?.then_some(about))
}

/// Whether the page has begun to use storage or a service worker, whose answers were not waited for. It is then to be settled
/// again.
async fn uses_storage(context: &CaptureContext<'_>, state: &PageState) -> Result<bool, CaptureError> {
    match state.scripted && context.spec.wait_until == WaitUntil::Auto && !context.is_late() {
        true => outside::is_unsettled(context).await,
        false => Ok(false),
    }
}

/// How long the steps took, up to now. The image was begun at `shot_at`.
fn timings(context: &CaptureContext<'_>, shot_at: Instant) -> Timings {
    let (committed_at, loaded_at) = context.tab.watch.read(|seen| (seen.committed_at, seen.loaded_at));
    let committed_at = committed_at.unwrap_or(context.began);
    Timings {
        navigate_ms: millis_between(context.began, committed_at),
        load_ms: loaded_at.map(|loaded_at| millis_between(committed_at, loaded_at)),
        settle_ms: millis_between(loaded_at.unwrap_or(committed_at), shot_at),
        shot_ms: millis_between(shot_at, Instant::now()),
    }
}

fn millis_between(from: Instant, to: Instant) -> u32 {
    u32::try_from(to.saturating_duration_since(from).as_millis()).unwrap_or(u32::MAX)
}
