//! PDFs at the address of a capture. The headless browser has no viewer, and would download them. A document of ours takes the
//! place of the PDF at its address, requests it, and draws one of its pages with PDF.js, in the sandbox of the page's process.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;
use grabd_domain::capture::{CaptureSpec, FileKind};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::load::pdf_tables;
use crate::page::load::watch::{Document, WatchState};
use crate::page::script;

const LIBRARY: &str = include_str!("../../../assets/pdfjs/pdf.min.mjs");
const WORKER: &str = include_str!("../../../assets/pdfjs/pdf.worker.min.mjs");
const DRAW: &str = include_str!("../scripts/pdf_page.js");

/// How long a PDF may take to be requested and drawn.
const DRAW_LIMIT: Duration = Duration::from_secs(15);

/// How often a page is drawn, each time with the tables that were missing before. A table may need another one.
const MAX_ROUNDS: u32 = 5;

/// The scripts that draw a page. They are sent only to documents of PDFs.
static PDF_PAGE: LazyLock<String> =
    LazyLock::new(|| format!("(() => {{\n{}{}{DRAW}return {{ draw }};\n}})()", as_script(LIBRARY), as_script(WORKER)));

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DrawArguments<'a> {
    /// The page, from 1.
    number: u32,
    /// The width of the page in image pixels.
    width: f64,
    is_transparent: bool,
    /// Tables by name, in base64.
    tables: &'a BTreeMap<&'static str, String>,
}

#[derive(Deserialize)]
struct Drawn {
    problem: Option<Problem>,
    #[serde(default)]
    pages: u32,
    /// The tables without which some texts were not drawn.
    #[serde(default)]
    missing: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Problem {
    /// The PDF could not be requested again.
    Unloaded,
    /// It needs a password.
    Locked,
    /// It has no such page.
    Missing,
    /// It is not a PDF, or has errors.
    Broken,
}

/// Prepares the navigation to a PDF, whose first navigation has ended as a download.
///
/// # Errors
/// If the capture asks for something that a PDF does not have, or if the browser does not answer.
pub(in crate::page) async fn open(context: &CaptureContext<'_>, pdf: &Document) -> Result<(), CaptureError> {
    if let Some(option) = unusable_option(context.spec) {
        return Err(CaptureError::failed(format!(
            "{option} cannot be used here: the address leads to a PDF, which has no elements."
        )));
    }
    let status = pdf.head.as_ref().map_or(200, |head| head.status);
    context.interception.show_pdf(&pdf.url, status);
    context.interception.apply(context.tab, false).await?;
    // Without scripts, no canvas is drawn. The document has none but ours.
    if !context.spec.javascript {
        let enable = SetScriptExecutionDisabledParams::new(false);
        context.tab.client.call(Some(&context.tab.session), enable).await?;
    }
    // The second navigation to the same address is no redirect.
    let restart = |seen: &mut WatchState| {
        (seen.navigations, seen.download) = (0, false);
        Some(())
    };
    context.tab.watch.until(Instant::now(), restart).await;
    Ok(())
}

/// Draws the page of the PDF that the capture asks for. Does nothing if the document is a web page.
///
/// # Errors
/// If the PDF or its page cannot be drawn, or if a page of a PDF is asked for and there is none.
pub(in crate::page) async fn draw(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    let number = context.spec.pdf_page;
    if !context.interception.shows_pdf() {
        return match number {
            1 => Ok(()),
            _ => Err(CaptureError::failed("`pdf_page` is for PDFs, and the address leads to a web page.")),
        };
    }
    let CaptureSpec { viewport, viewports, scale, transparent, .. } = context.spec;
    let widest = viewports.iter().fold(viewport.width(), |widest, further| widest.max(further.width()));
    let width = f64::from(widest) * scale.factor();
    let until = context.capture_by.min(Instant::now() + DRAW_LIMIT);
    let mut tables = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        let arguments = DrawArguments { number, width, is_transparent: *transparent, tables: &tables };
        let missing = draw_with(context, &arguments, until).await?;
        let found: Vec<_> = missing.iter().filter_map(|name| pdf_tables::find(name)).collect();
        let before = tables.len();
        tables.extend(found.into_iter().map(|(name, table)| (name, STANDARD.encode(table))));
        if tables.len() == before {
            break;
        }
    }
    Ok(())
}

/// Draws the page with some tables. Returns the names of those that are missing.
async fn draw_with(
    context: &CaptureContext<'_>,
    arguments: &DrawArguments<'_>,
    until: Instant,
) -> Result<Vec<String>, CaptureError> {
    let (limit, number) = (until.saturating_duration_since(Instant::now()), arguments.number);
    match script::call_in::<Drawn>(context.tab, limit, &PDF_PAGE, "draw", arguments).await {
        Ok(Some(Drawn { problem: None, missing, .. })) => Ok(missing),
        Ok(Some(Drawn { problem: Some(problem), pages, .. })) => {
            Err(CaptureError::failed(message(problem, number, pages)))
        }
        Ok(None) => Err(CaptureError::failed(message(Problem::Broken, number, 0))),
        Err(CallError::Timeout(_)) => Err(CaptureError::failed("The PDF could not be drawn in time.")),
        Err(error) => Err(error.into()),
    }
}

fn message(problem: Problem, number: u32, pages: u32) -> String {
    match problem {
        Problem::Unloaded => "The PDF could not be loaded.".to_owned(),
        Problem::Locked => "The PDF needs a password.".to_owned(),
        Problem::Missing if pages == 1 => format!("`pdf_page` is {number}, and the PDF has 1 page."),
        Problem::Missing => format!("`pdf_page` is {number}, and the PDF has {pages} pages."),
        Problem::Broken => "The PDF is broken and could not be drawn.".to_owned(),
    }
}

/// The first option of the capture that needs the elements or the text of a web page.
fn unusable_option(spec: &CaptureSpec) -> Option<String> {
    let CaptureSpec {
        selector, wait_for, wait_for_gone, changes, conditions, mask, highlight, secrets, evidence, ..
    } = spec;
    let used = [
        ("selector", selector.is_some()),
        ("wait_for", wait_for.is_some()),
        ("wait_for_gone", wait_for_gone.is_some()),
        ("hide", !changes.hide.is_empty()),
        ("remove", !changes.remove.is_empty()),
        ("css", changes.css.is_some()),
        ("click", !changes.click.is_empty()),
        ("script", changes.script.is_some()),
        ("steps", !secrets.steps.is_empty()),
        ("mask", !mask.is_empty()),
        ("fail_if_selector", conditions.fail_if_selector.is_some()),
        ("fail_if_text", conditions.fail_if_text.is_some()),
        ("wait_for_text", conditions.wait_for_text.is_some()),
        ("highlight", !highlight.is_empty()),
        ("wait_for_expression", conditions.wait_for_expression.is_some()),
        ("wait_for_signal", conditions.wait_for_signal),
        // It has the page as MHTML.
        ("evidence", *evidence),
    ];
    let option = used.into_iter().find(|(_, is_used)| *is_used).map(|(name, _)| format!("`{name}`"));
    let file = || spec.also.iter().find(|kind| !is_of_any_document(**kind)).copied();
    option.or_else(|| file().map(|kind| format!("`also` with \"{}\"", kind.as_str())))
}

/// Whether a file does not depend on the elements and the text of a web page.
fn is_of_any_document(kind: FileKind) -> bool {
    match kind {
        FileKind::Report | FileKind::Har | FileKind::Difference | FileKind::Thumbnail => true,
        FileKind::Html
        | FileKind::Text
        | FileKind::Markdown
        | FileKind::Links
        | FileKind::Elements
        | FileKind::Accessibility
        | FileKind::Marks
        | FileKind::Mhtml
        | FileKind::Pdf
        | FileKind::Evidence => false,
    }
}

/// A module as a script: without its exports, and without the address of the module, which only Node.js uses.
fn as_script(module: &str) -> String {
    let end = module.rfind("export{").unwrap_or(module.len());
    format!("(() => {{\n{}\n}})();\n", module[..end].replace("import.meta.url", "\"\""))
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;

    #[test]
    fn modules_become_scripts() {
        for word in ["export{", "import.meta"] {
            assert!(!PDF_PAGE.contains(word), "{word}");
        }
        for word in ["pdfjsLib", "pdfjsWorker", "const draw = "] {
            assert!(PDF_PAGE.contains(word), "{word}");
        }
        assert!(PDF_PAGE.starts_with("(() => {") && PDF_PAGE.ends_with("})()"));
    }

    #[test]
    fn options_that_need_a_web_page_are_named() {
        let unusable = |change: fn(&mut CaptureRequest)| {
            let mut request = CaptureRequest { url: Some("https://a.example/".into()), ..CaptureRequest::default() };
            change(&mut request);
            unusable_option(&CaptureSpec::parse(&request).unwrap())
        };
        assert_eq!(unusable(|r| (r.full_page, r.pdf_page, r.freeze) = (Some(true), Some(3), Some(true))), None);
        assert_eq!(unusable(|r| r.also = Some(vec!["har".into(), "report".into()])), None);
        assert_eq!(unusable(|r| r.selector = Some("a".into())).as_deref(), Some("`selector`"));
        assert_eq!(unusable(|r| r.fail_if_text = Some("a".into())).as_deref(), Some("`fail_if_text`"));
        assert_eq!(unusable(|r| r.wait_for_signal = Some(true)).as_deref(), Some("`wait_for_signal`"));
        assert_eq!(unusable(|r| r.evidence = Some(true)).as_deref(), Some("`evidence`"));
        assert_eq!(unusable(|r| r.also = Some(vec!["text".into()])).as_deref(), Some("`also` with \"text\""));
    }
}
