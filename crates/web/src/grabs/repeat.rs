//! The line for a shell that makes a capture again.

use grabd_domain::capture::{CaptureSpec, Format, Selector};
use grabd_domain::limits;
use serde_json::{Map, Value, json};

/// A create with these options. The key is a variable's, so that the line can be kept and shown.
pub(crate) fn curl(public_url: &str, spec: &CaptureSpec) -> String {
    let url = quoted(&format!("{public_url}/v1/grabs"));
    let body = quoted(&Value::Object(body(spec)).to_string());
    format!(
        "curl -sS {url} \\\n  -H \"Authorization: Bearer $KEY\" \\\n  -H 'Content-Type: application/json' \\\n  -d {body}"
    )
}

/// The options that are not what they are without being asked for.
fn body(spec: &CaptureSpec) -> Map<String, Value> {
    let CaptureSpec { url, viewport, format, full_page, delay, selector } = spec;
    let mut body = Map::new();
    let mut add = |name: &str, value: Value, is_default: bool| {
        if !is_default {
            body.insert(name.to_owned(), value);
        }
    };
    add("url", json!(url.as_str()), false);
    add("width", json!(viewport.width()), viewport.width() == limits::DEFAULT_WIDTH);
    add("height", json!(viewport.height()), viewport.height() == limits::DEFAULT_HEIGHT);
    add("format", json!(format.as_str()), *format == Format::default());
    add("full_page", json!(full_page), !full_page);
    add("delay_ms", json!(u64::try_from(delay.as_millis()).unwrap_or(0)), delay.is_zero());
    add("selector", json!(selector.as_ref().map(Selector::as_str)), selector.is_none());
    body
}

/// One word of a POSIX shell, whatever it says.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use grabd_domain::capture::CaptureRequest;

    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        let selector = "a[title='it''s \"$KEY\" `id` \\\\ $(id)\n!']";
        let request = CaptureRequest {
            url: Some("https://example.com/?a=b&c='d'".into()),
            width: Some(800),
            full_page: Some(true),
            selector: Some(selector.into()),
            ..CaptureRequest::default()
        };
        let line = curl("https://grabd.example", &CaptureSpec::parse(&request).unwrap());
        // A curl that prints what it is given, one argument a line, with line ends as they are in JSON.
        let script = format!("curl() {{ printf '%s\\n' \"$@\"; }}\nKEY=sk_test_x\n{line}");
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = said.lines().collect();
        assert_eq!(words[..3], ["-sS", "https://grabd.example/v1/grabs", "-H"]);
        assert_eq!(words[3..7], ["Authorization: Bearer sk_test_x", "-H", "Content-Type: application/json", "-d"]);
        let body: Value = serde_json::from_str(words[7]).unwrap();
        let expected = json!({
            "url": "https://example.com/?a=b&c=%27d%27", "width": 800, "full_page": true, "selector": selector,
        });
        assert_eq!(body, expected);
    }
}
