//! Programs that repeat a capture, in the languages of most callers.
//!
//! Each reads the key from the variable `GRAB_API_KEY`, so that a program can be shared. Only the page of a new key has
//! programs with the key itself.

use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_options::TABLE;
use serde_json::{Map, Value};

use super::options;

/// A program.
pub(crate) struct Snippet {
    pub(crate) language: &'static str,
    pub(crate) code: String,
}

/// Where a program takes its API key from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeySource<'a> {
    /// The variable `GRAB_API_KEY`.
    Variable,
    /// The program itself. Keys consist of letters, digits, `-` and `_`, which no language has to quote.
    Text(&'a str),
}

impl KeySource<'_> {
    /// The value of `Authorization` as an expression: `with_key` makes it from a key, `variable` reads the variable.
    fn authorization(self, with_key: fn(&str) -> String, variable: &str) -> String {
        match self {
            Self::Variable => variable.to_owned(),
            Self::Text(key) => with_key(&format!("Bearer {key}")),
        }
    }

    /// A part that only a program with the variable needs.
    const fn only_for_variable(self, part: &'static str) -> &'static str {
        match self {
            Self::Variable => part,
            Self::Text(_) => "",
        }
    }
}

fn in_quotes(text: &str) -> String {
    format!("\"{text}\"")
}

/// The programs that create a capture with these options.
pub(crate) fn all(public_url: &str, spec: &CaptureSpec) -> Vec<Snippet> {
    creating(public_url, spec, KeySource::Variable)
}

/// The programs that create the capture of a request, or why it is not valid.
pub(crate) fn of_request(public_url: &str, request: &CaptureRequest) -> Result<Vec<Snippet>, String> {
    match CaptureSpec::parse(request) {
        Ok(spec) => Ok(all(public_url, &spec)),
        Err(fault) => Err(match options::field_error(fault) {
            Ok(error) => error.message,
            Err(_) => "These options cannot be combined.".to_owned(),
        }),
    }
}

/// The programs that create a capture with these options, with a key.
pub(crate) fn creating(public_url: &str, spec: &CaptureSpec, key: KeySource<'_>) -> Vec<Snippet> {
    let url = format!("{public_url}/v1/grabs");
    let body = Value::Object(body(spec));
    let programs: [(&'static str, String); 6] = [
        ("curl", curl_command(&url, &body, key)),
        ("JavaScript", javascript(&url, &body, key)),
        ("Python", python(&url, &body, key)),
        ("Go", go(&url, &body, key)),
        ("Rust", rust(&url, &body, key)),
        ("PHP", php(&url, &body, key)),
    ];
    programs.into_iter().map(|(language, code)| Snippet { language, code }).collect()
}

fn curl_command(url: &str, body: &Value, key: KeySource<'_>) -> String {
    let (url, body) = (shell_quoted(url), shell_quoted(&body.to_string()));
    let header =
        key.authorization(|value| format!("'Authorization: {value}'"), "\"Authorization: Bearer $GRAB_API_KEY\"");
    format!("curl -sS {url} \\\n  -H {header} \\\n  -H 'Content-Type: application/json' \\\n  -d {body}")
}

fn javascript(url: &str, body: &Value, key: KeySource<'_>) -> String {
    let (url, body) = (Value::from(url), indented(body, 1));
    let authorization = key.authorization(in_quotes, "`Bearer ${process.env.GRAB_API_KEY}`");
    format!(
        r#"const response = await fetch({url}, {{
  method: "POST",
  headers: {{
    Authorization: {authorization},
    "Content-Type": "application/json",
  }},
  body: JSON.stringify({body}),
}});
const grab = await response.json();
if (!response.ok) throw new Error(grab.error.message);
console.log(grab.image_url);"#
    )
}

fn python(url: &str, body: &Value, key: KeySource<'_>) -> String {
    let (url, body) = (Value::from(url), python_literal(body, 1));
    let authorization = key.authorization(in_quotes, "f\"Bearer {os.environ['GRAB_API_KEY']}\"");
    let import = key.only_for_variable("import os\n");
    format!(
        r#"{import}import requests

response = requests.post(
    {url},
    headers={{"Authorization": {authorization}}},
    json={body},
    timeout=30,
)
grab = response.json()
if not response.ok:
    raise RuntimeError(grab["error"]["message"])
print(grab["image_url"])"#
    )
}

fn go(url: &str, body: &Value, key: KeySource<'_>) -> String {
    let (url, text) = (Value::from(url), indented(body, 0));
    // A raw string cannot contain its quote. JSON strings are Go strings.
    let body = if text.contains('`') { Value::from(body.to_string()).to_string() } else { format!("`{text}`") };
    let authorization = key.authorization(in_quotes, "\"Bearer \"+os.Getenv(\"GRAB_API_KEY\")");
    let import = key.only_for_variable("\t\"os\"\n");
    format!(
        r#"package main

import (
	"fmt"
	"io"
	"net/http"
{import}	"strings"
)

func main() {{
	body := strings.NewReader({body})
	request, err := http.NewRequest("POST", {url}, body)
	if err != nil {{
		panic(err)
	}}
	request.Header.Set("Authorization", {authorization})
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {{
		panic(err)
	}}
	defer response.Body.Close()
	grab, err := io.ReadAll(response.Body)
	if err != nil {{
		panic(err)
	}}
	fmt.Println(response.Status, string(grab))
}}"#
    )
}

fn rust(url: &str, body: &Value, key: KeySource<'_>) -> String {
    let (url, text) = (Value::from(url), indented(body, 0));
    let mut hashes = "#".to_owned();
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    let authorization = match key {
        KeySource::Variable => "std::env::var(\"GRAB_API_KEY\")?".to_owned(),
        KeySource::Text(key) => in_quotes(key),
    };
    format!(
        r##"// reqwest = {{ version = "0.12", features = ["blocking"] }}
fn main() -> Result<(), Box<dyn std::error::Error>> {{
    let body = r{hashes}"{text}"{hashes};
    let response = reqwest::blocking::Client::new()
        .post({url})
        .bearer_auth({authorization})
        .header("Content-Type", "application/json")
        .body(body)
        .send()?;
    println!("{{}} {{}}", response.status(), response.text()?);
    Ok(())
}}"##
    )
}

fn php(url: &str, body: &Value, key: KeySource<'_>) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"));
    let (url, body) = (quoted(url), quoted(&indented(body, 0)));
    let authorization = key.authorization(
        |value| format!("'Authorization: {value}'"),
        "'Authorization: Bearer ' . getenv('GRAB_API_KEY')",
    );
    format!(
        r#"<?php
$curl = curl_init({url});
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_POST => true,
    CURLOPT_HTTPHEADER => [
        {authorization},
        'Content-Type: application/json',
    ],
    CURLOPT_POSTFIELDS => {body},
]);
$grab = json_decode(curl_exec($curl), true);
echo $grab['image_url'] ?? $grab['error']['message'], "\n";"#
    )
}

/// JSON over several lines, within a program that is indented by `level` steps of two spaces.
fn indented(value: &Value, level: usize) -> String {
    format!("{value:#}").replace('\n', &format!("\n{}", "  ".repeat(level)))
}

/// A value as a Python expression over several lines, indented by `level` steps of four spaces.
fn python_literal(value: &Value, level: usize) -> String {
    let (inner, outer) = ("    ".repeat(level + 1), "    ".repeat(level));
    let lines = |open: char, items: Vec<String>, close: char| match items.is_empty() {
        true => format!("{open}{close}"),
        false => {
            let items: String = items.into_iter().map(|item| format!("{inner}{item},\n")).collect();
            format!("{open}\n{items}{outer}{close}")
        }
    };
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        // JSON strings are Python strings.
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => lines('[', items.iter().map(|item| python_literal(item, level + 1)).collect(), ']'),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("{}: {}", Value::from(name.as_str()), python_literal(value, level + 1))
            };
            lines('{', members.iter().map(member).collect(), '}')
        }
    }
}

/// The options that differ from their defaults, without secrets.
fn body(spec: &CaptureSpec) -> Map<String, Value> {
    let request = spec.to_minimal_request();
    let options = TABLE
        .iter()
        .filter(|option| !option.is_secret)
        .filter_map(|option| Some((option.name.to_owned(), serde_json::to_value(request.get(option.name)?).ok()?)));
    // The document is not known any more.
    let html = spec.has_own_document().then(|| ("html".to_owned(), Value::from("<h1>…</h1>")));
    html.into_iter().chain(options).collect()
}

/// Quotes text as one POSIX shell word.
fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use grabd_domain::capture::CaptureRequest;
    use serde_json::json;

    use super::*;

    #[test]
    fn shell_parses_the_command_back_to_the_options() {
        let selector = "a[title='it''s \"$KEY\" `id` \\\\ $(id)\n!']";
        let request = CaptureRequest {
            url: Some("https://example.com/?a=b&c='d'".into()),
            width: Some(800),
            full_page: Some(true),
            selector: Some(selector.into()),
            ..CaptureRequest::default()
        };
        let programs = all("https://grabd.example", &CaptureSpec::parse(&request).unwrap());
        let line = &programs[0].code;
        // Replaces curl by a function that prints its arguments, one per line. JSON escapes line breaks.
        let script = format!("curl() {{ printf '%s\\n' \"$@\"; }}\nGRAB_API_KEY=sk_test_x\n{line}");
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = stdout.lines().collect();
        assert_eq!(words[..3], ["-sS", "https://grabd.example/v1/grabs", "-H"]);
        assert_eq!(words[3..7], ["Authorization: Bearer sk_test_x", "-H", "Content-Type: application/json", "-d"]);
        let body: Value = serde_json::from_str(words[7]).unwrap();
        let expected = json!({
            "url": "https://example.com/?a=b&c=%27d%27", "width": 800, "full_page": true, "selector": selector,
        });
        assert_eq!(body, expected);
    }

    /// The text between two parts of a program.
    fn between<'a>(code: &'a str, before: &str, after: &str) -> &'a str {
        code.split_once(before).and_then(|(_, rest)| rest.split_once(after)).expect("both parts").0
    }

    #[test]
    fn texts_of_compiled_languages_are_the_body() {
        for selector in ["a[title='x \"# \\'] ", "a[title='`\"##']"] {
            let body = json!({ "url": "https://example.com/", "selector": selector });
            let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let go = go("https://grabd.example/v1/grabs", &body, KeySource::Variable);
            let literal = between(&go, "strings.NewReader(", ")\n\trequest");
            let text = match literal.strip_prefix('`') {
                Some(raw) => raw.trim_end_matches('`').to_owned(),
                None => parsed(literal).as_str().unwrap().to_owned(),
            };
            assert_eq!(parsed(&text), body);
            let rust = rust("https://grabd.example/v1/grabs", &body, KeySource::Variable);
            let literal = between(&rust, "let body = r", ";\n");
            let hashes = literal.split('"').next().unwrap();
            let text = literal.strip_prefix(hashes).and_then(|text| text.strip_suffix(hashes)).unwrap();
            let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap();
            assert!(!text.contains(&format!("\"{hashes}")));
            assert_eq!(parsed(text), body);
            let php = php("https://grabd.example/v1/grabs", &body, KeySource::Variable);
            let text = between(&php, "CURLOPT_POSTFIELDS => '", "',\n]");
            assert!(!text.replace(r"\\", "").replace(r"\'", "").contains('\''), "{text}");
            assert_eq!(parsed(&text.replace(r"\'", "'").replace(r"\\", r"\")), body);
        }
    }
    #[test]
    fn programs_with_a_key_differ_only_in_the_key() {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        let spec = CaptureSpec::parse(&request).unwrap();
        let url = "https://grabd.example";
        let with_key = creating(url, &spec, KeySource::Text("sk_live_a-_Z9"));
        for (program, variable) in with_key.iter().zip(all(url, &spec)) {
            let Snippet { language, code } = program;
            assert_eq!(*language, variable.language);
            assert_eq!(code.matches("sk_live_a-_Z9").count(), 1, "{code}");
            assert!(!code.contains("GRAB_API_KEY") && variable.code.contains("GRAB_API_KEY"), "{code}");
            // Go refuses imports that are not used.
            assert!(!code.contains("import os") && !code.contains("\t\"os\""), "{code}");
            assert!(code.contains("https://grabd.example/v1/grabs") && code.contains("https://example.com/"), "{code}");
        }
    }

    #[test]
    fn request_that_is_not_valid_has_no_programs() {
        let request = CaptureRequest { url: Some("ftp://example.com".into()), ..CaptureRequest::default() };
        let why = of_request("https://grabd.example", &request).err().unwrap();
        assert!(why.contains("web address"), "{why}");
    }
}
