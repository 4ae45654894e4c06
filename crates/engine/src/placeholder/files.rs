//! The attachments of a placeholder: small ones of each kind, always the same for equal requests.

use bytes::Bytes;
use grabd_domain::capture::{CaptureSpec, FileKind};
use serde_json::json;

use super::drawing::Drawing;

/// The file of this kind beside the placeholder of a spec. `None` for those that are made of images.
pub(crate) fn file(spec: &CaptureSpec, kind: FileKind) -> Option<Bytes> {
    let url = spec.url.as_str();
    Some(match kind {
        FileKind::Html => html(url).into(),
        FileKind::Text => format!("TEST\n\nPlaceholder of {url}\n").into(),
        // The normalized URL has no `>`.
        FileKind::Markdown => format!("# TEST\n\nPlaceholder of <{url}>\n").into(),
        FileKind::Links => json!([{ "url": url, "text": url, "rel": "" }]).to_string().into(),
        FileKind::Elements => {
            let (width, height) = Drawing::of(spec).image_size();
            json!({ "image": { "width": width, "height": height }, "elements": [] }).to_string().into()
        }
        // The elements have no numbers, since there are none.
        FileKind::Accessibility => {
            format!("- heading \"TEST\" [level=1]\n- paragraph:\n  - text: Placeholder of\n  - link {}\n", json!(url))
                .into()
        }
        FileKind::Mhtml => mhtml(url).into(),
        FileKind::Pdf => pdf(),
        FileKind::Report => json!({
            "navigation": [{ "url": url, "status": 200, "ms": 0 }],
            "web_vitals": { "ttfb_ms": null, "fcp_ms": null, "lcp_ms": null, "cls": null },
            "requests": [],
            "requests_omitted": 0,
            "console": [],
            "fonts_failed": [],
            "settled_by": "quiet",
            "timeline": [],
            "warnings": [],
        })
        .to_string()
        .into(),
        FileKind::Har => json!({
            "log": {
                "version": "1.2",
                "creator": { "name": "grabd", "version": "test" },
                "pages": [{ "startedDateTime": "1970-01-01T00:00:00.000Z", "id": "page_1", "title": "TEST", "pageTimings": {} }],
                "entries": [],
                "_requestsOmitted": 0,
                "comment": "Bodies, cookies and credentials are left out, and 0 further requests.",
            }
        })
        .to_string()
        .into(),
        FileKind::Marks | FileKind::Difference | FileKind::Thumbnail | FileKind::Evidence => return None,
    })
}

fn html(url: &str) -> String {
    let url = escaped(url);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>TEST</title></head>\n\
         <body><h1>TEST</h1><p>Placeholder of <a href=\"{url}\">{url}</a></p></body></html>\n"
    )
}

/// A message of one part. The normalized URL has no line breaks.
fn mhtml(url: &str) -> String {
    let document = html(url).replace('\n', "\r\n");
    format!(
        "Snapshot-Content-Location: {url}\r\nSubject: TEST\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/related; type=\"text/html\"; boundary=\"----MultipartBoundary--TEST----\"\r\n\r\n\
         ------MultipartBoundary--TEST----\r\nContent-Type: text/html; charset=utf-8\r\n\
         Content-Transfer-Encoding: 8bit\r\nContent-Location: {url}\r\n\r\n{document}\r\n\
         ------MultipartBoundary--TEST------\r\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// An A4 page with the word TEST.
fn pdf() -> Bytes {
    let content = "BT /F1 48 Tf 72 720 Td (TEST) Tj ET";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut offsets = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for offset in offsets {
        file.push_str(&format!("{offset:010} 00000 n \n"));
    }
    file.push_str(&format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1));
    file.into()
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;

    #[test]
    fn each_kind_has_a_small_valid_file() {
        let url = "https://example.com/?a='b'&c=%3Cd%3E";
        let request = CaptureRequest { url: Some(url.into()), ..CaptureRequest::default() };
        let spec = CaptureSpec::parse(&request).unwrap();
        assert_eq!((file(&spec, FileKind::Difference), file(&spec, FileKind::Marks)), (None, None));
        for kind in FileKind::ALL.into_iter().filter(|kind| kind.is_of_page()) {
            let content = file(&spec, kind).unwrap();
            assert!(!content.is_empty() && content.len() < 2000, "{kind:?}");
            assert_eq!(file(&spec, kind).as_ref(), Some(&content));
            if kind.media_type() == "application/json" {
                serde_json::from_slice::<serde_json::Value>(&content).unwrap();
            }
        }
        let html = String::from_utf8(file(&spec, FileKind::Html).unwrap().to_vec()).unwrap();
        assert!(html.contains("?a=%27b%27&amp;c="), "{html}");
        let pdf = String::from_utf8(pdf().to_vec()).unwrap();
        let table: usize = pdf.lines().rev().nth(1).unwrap().parse().unwrap();
        assert!(pdf[table..].starts_with("xref\n"));
        let second: usize = pdf[table..].lines().nth(4).unwrap()[..10].parse().unwrap();
        assert!(pdf[second..].starts_with("2 0 obj"));
    }
}
