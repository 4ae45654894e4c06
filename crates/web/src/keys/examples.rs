//! Programs for a new key, with the key in them: a capture, or a read if the key may not create captures.

use grabd_domain::Fault;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};
use grabd_domain::credentials::{Scope, Scopes};

use crate::grabs::snippets::{self, KeySource, Snippet};

/// The page that the example captures.
const EXAMPLE_URL: &str = "https://example.com/";

/// What the programs for a key do, and the programs.
pub(super) struct Examples {
    /// A sentence for the page.
    pub(super) about: &'static str,
    pub(super) programs: Vec<Snippet>,
}

/// The programs for a key with these scopes. Each succeeds with this key.
///
/// # Errors
/// When the example is not a valid request.
pub(super) fn for_key(public_url: &str, key: &str, scopes: Scopes, is_live: bool) -> Result<Examples, Fault> {
    if scopes.includes(Scope::Create) {
        let request = CaptureRequest { url: Some(EXAMPLE_URL.to_owned()), ..CaptureRequest::default() };
        let programs = snippets::creating(public_url, &CaptureSpec::parse(&request)?, KeySource::Text(key));
        let about = match is_live {
            true => "Captures a page, which costs one credit.",
            false => "Gets a placeholder image, which is free.",
        };
        return Ok(Examples { about, programs });
    }
    let (about, path) = match scopes.includes(Scope::Read) {
        true => ("This key cannot create captures. The example reads the credits and the usage of the team.", "usage"),
        false => ("This key can only manage. The example lists the webhooks of the team.", "webhooks"),
    };
    Ok(Examples { about, programs: reading(&format!("{public_url}/v1/{path}"), key) })
}

/// The programs that get a URL. Neither the URL, which has no query, nor the key has a character that a language has to
/// quote.
fn reading(url: &str, key: &str) -> Vec<Snippet> {
    let programs = [
        ("curl", format!("curl -sS '{url}' \\\n  -H 'Authorization: Bearer {key}'")),
        (
            "JavaScript",
            format!(
                r#"const response = await fetch("{url}", {{
  headers: {{ Authorization: "Bearer {key}" }},
}});
console.log(response.status, await response.json());"#
            ),
        ),
        (
            "Python",
            format!(
                r#"import requests

response = requests.get(
    "{url}",
    headers={{"Authorization": "Bearer {key}"}},
    timeout=30,
)
print(response.status_code, response.json())"#
            ),
        ),
        (
            "Go",
            format!(
                r#"package main

import (
	"fmt"
	"io"
	"net/http"
)

func main() {{
	request, err := http.NewRequest("GET", "{url}", nil)
	if err != nil {{
		panic(err)
	}}
	request.Header.Set("Authorization", "Bearer {key}")
	response, err := http.DefaultClient.Do(request)
	if err != nil {{
		panic(err)
	}}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {{
		panic(err)
	}}
	fmt.Println(response.Status, string(body))
}}"#
            ),
        ),
        (
            "Rust",
            format!(
                r#"// reqwest = {{ version = "0.12", features = ["blocking"] }}
fn main() -> Result<(), Box<dyn std::error::Error>> {{
    let response = reqwest::blocking::Client::new().get("{url}").bearer_auth("{key}").send()?;
    println!("{{}} {{}}", response.status(), response.text()?);
    Ok(())
}}"#
            ),
        ),
        (
            "PHP",
            format!(
                r"<?php
$curl = curl_init('{url}');
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HTTPHEADER => ['Authorization: Bearer {key}'],
]);
echo curl_exec($curl), PHP_EOL;"
            ),
        ),
    ];
    programs.into_iter().map(|(language, code)| Snippet { language, code }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk_live_a-_Z9";

    fn examples(scopes: &[Scope]) -> Examples {
        for_key("https://grabd.example", KEY, Scopes::new(scopes.to_vec()).unwrap(), true).unwrap()
    }

    #[test]
    fn example_of_a_key_needs_only_its_scopes() {
        for (scopes, path) in [
            (&[Scope::Read, Scope::Create, Scope::Manage][..], "grabs"),
            (&[Scope::Create], "grabs"),
            (&[Scope::Read], "usage"),
            (&[Scope::Read, Scope::Manage], "usage"),
            (&[Scope::Manage], "webhooks"),
        ] {
            let Examples { programs, .. } = examples(scopes);
            assert_eq!(programs.len(), 6);
            for Snippet { language, code } in programs {
                assert!(code.contains(&format!("https://grabd.example/v1/{path}")), "{language}: {code}");
                assert_eq!(code.matches(KEY).count(), 1, "{language}: {code}");
                let creates = ["POST", " -d ", ".post(", "JSON.stringify"].iter().any(|word| code.contains(word));
                assert_eq!(creates, path == "grabs", "{language}: {code}");
            }
        }
    }

    #[test]
    fn languages_are_those_of_captures() {
        let languages =
            |scopes| examples(scopes).programs.into_iter().map(|program| program.language).collect::<Vec<_>>();
        assert_eq!(languages(&[Scope::Read]), languages(&[Scope::Create]));
    }
}
