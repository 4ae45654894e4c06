//! `grab verify`: verifies evidence offline. Only `--from` asks a service, and only for its keys.

use std::path::{Path, PathBuf};

use grabd_evidence::{MAX_PACKAGE_BYTES, PublicKey, Verified};
use serde_json::json;
use url::Url;

use crate::failure::{Exit, Failure};
use crate::http::EVIDENCE_KEYS_PATH;
use crate::{http, output};

/// The most bytes of a file or a response with keys.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// The evidence, and the keys that may have signed it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// The evidence: a file evidence.zip
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// A file with the keys that you trust: PEM, a JSON Web Key, or a set of them
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "service")]
    pub(crate) key: Option<PathBuf>,
    /// Get the keys from this service, such as `https://grabd.example`
    #[arg(long = "from", value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub(crate) service: Option<Url>,
}

/// Whether the key that signed is one that the user trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyCheck {
    /// It is one of them.
    Trusted,
    /// It is none of them.
    Other,
    /// No keys were given.
    Unchecked,
}

/// Verifies evidence, and prints what it is about.
///
/// # Errors
/// If a file cannot be read, or the keys cannot be had.
pub(crate) async fn verify(as_json: bool, args: &VerifyArgs) -> Result<Exit, Failure> {
    let trusted = trusted_keys(args).await?;
    let package = read(&args.file, MAX_PACKAGE_BYTES)?;
    let verified = match grabd_evidence::verify(&package) {
        Ok(verified) => verified,
        Err(invalid) => return refuse(as_json, &args.file, &format!("The evidence is not valid: {invalid}.")),
    };
    let check = match &trusted {
        Some(keys) if keys.contains(&verified.key) => KeyCheck::Trusted,
        Some(_) => KeyCheck::Other,
        None => KeyCheck::Unchecked,
    };
    if check == KeyCheck::Other {
        let id = verified.key.id();
        let why =
            format!("The evidence is not valid: it is signed by the key {id}, which is none of those that you trust.");
        return refuse(as_json, &args.file, &why);
    }
    match as_json {
        true => output::line(&to_json(&verified, check).to_string())?,
        false => output::line(&report(&args.file, &verified, check))?,
    }
    Ok(exit(&verified, check))
}

/// Only evidence of a page that is signed by a trusted key is a success.
fn exit(verified: &Verified, check: KeyCheck) -> Exit {
    match check {
        KeyCheck::Trusted if !verified.manifest.test => Exit::Done,
        KeyCheck::Trusted | KeyCheck::Unchecked => Exit::Unproven,
        KeyCheck::Other => Exit::Failed,
    }
}

fn refuse(as_json: bool, file: &Path, why: &str) -> Result<Exit, Failure> {
    match as_json {
        true => output::line(&json!({ "valid": false, "reason": why }).to_string())?,
        false => output::line(&refusal(file, why))?,
    }
    Ok(Exit::Failed)
}

/// The reason may have names of files from the manifest.
fn refusal(file: &Path, why: &str) -> String {
    format!("{}: {}", file.display(), shown(why))
}

/// The keys that the user trusts. `None` if no source was given.
async fn trusted_keys(args: &VerifyArgs) -> Result<Option<Vec<PublicKey>>, Failure> {
    let (text, source) = match (&args.key, &args.service) {
        (Some(path), _) => (text(&read(path, MAX_KEYS_BYTES)?), path.display().to_string()),
        (None, Some(service)) => (fetch(service).await?, service.to_string()),
        (None, None) => return Ok(None),
    };
    match PublicKey::read_all(&text) {
        Some(keys) => Ok(Some(keys)),
        None => Err(Failure::Usage(format!("{source} has no Ed25519 key: it must have PEM or JSON Web Keys"))),
    }
}

/// The keys that a service publishes.
async fn fetch(service: &Url) -> Result<String, Failure> {
    let mut url = service.clone();
    url.set_path(EVIDENCE_KEYS_PATH);
    url.set_query(None);
    url.set_fragment(None);
    let client = http::client().map_err(Failure::unreachable(&url))?;
    let mut response = client.get(url.clone()).send().await.map_err(Failure::unreachable(&url))?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(Failure::unreachable(&url))? {
        body.extend_from_slice(&part);
        if u64::try_from(body.len()).unwrap_or(u64::MAX) > MAX_KEYS_BYTES {
            return Err(Failure::UnexpectedResponse { url, status });
        }
    }
    match status.is_success() {
        true => Ok(text(&body)),
        false => Err(Failure::UnexpectedResponse { url, status }),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a file of at most this many bytes.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    use std::io::Read as _;

    let file = std::fs::File::open(path).map_err(Failure::file(path))?;
    let mut content = Vec::new();
    // With one more byte, a larger file is refused and not cut.
    file.take(most.saturating_add(1)).read_to_end(&mut content).map_err(Failure::file(path))?;
    match u64::try_from(content.len()).unwrap_or(u64::MAX) > most {
        true => Err(Failure::Usage(format!("{} has more than {} MB", path.display(), most >> 20))),
        false => Ok(content),
    }
}

fn to_json(Verified { manifest, key, has_timestamp }: &Verified, check: KeyCheck) -> serde_json::Value {
    json!({
        "valid": true,
        "key_id": key.id(),
        "key_trusted": check == KeyCheck::Trusted,
        "has_timestamp": has_timestamp,
        "manifest": manifest,
    })
}

fn report(file: &Path, Verified { manifest, key, has_timestamp }: &Verified, check: KeyCheck) -> String {
    let mut lines = Vec::new();
    match check {
        KeyCheck::Trusted => lines.push(format!("{}: valid, and signed by a key that you trust.", file.display())),
        KeyCheck::Unchecked | KeyCheck::Other => {
            lines.push(format!("{}: the signature is valid for the key in the file.", file.display()));
            lines.push("Whose key that is was NOT checked: anybody can sign with a key of their own.".to_owned());
            lines.push("Give the key of the service with --key or --from.".to_owned());
        }
    }
    if manifest.test {
        lines.push("This is a TEST: a placeholder of a test key. No page was opened.".to_owned());
    }
    let status = manifest.http_status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
    lines.extend([
        format!("Requested:  {}", shown(&manifest.requested_url)),
        format!("Captured:   {}", shown(manifest.final_url.as_deref().unwrap_or("unknown"))),
        format!("Status:     {status}"),
        format!("Created at: {}", shown(&manifest.created_at)),
        format!("Captured at: {}", shown(&manifest.captured_at)),
        format!("Grab:       {}", shown(&manifest.grab_id)),
        format!("Key:        {}", key.id()),
    ]);
    if *has_timestamp {
        lines.push("Time stamp: manifest.tsr, of another authority. Verify it with `openssl ts -verify`.".to_owned());
    }
    let names: Vec<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    lines.push(format!("Files:      {}", shown(&names.join(", "))));
    lines.join("\n")
}

/// A text of the package without what changes a terminal: anybody can sign a package.
fn shown(text: &str) -> String {
    let is_hidden = |character: char| {
        character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|character| if is_hidden(character) { '\u{fffd}' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use grabd_evidence::{Contents, MANIFEST_VERSION, Manifest, PackageFile, SigningKey};

    use super::*;

    fn manifest(test: bool) -> Manifest {
        Manifest {
            version: MANIFEST_VERSION,
            test,
            grab_id: "01993e1c-7b1a-7000-8000-0123456789ab".to_owned(),
            requested_url: "https://example.com/\u{1b}[2J".to_owned(),
            final_url: None,
            http_status: Some(200),
            tls: None,
            created_at: "2026-11-20T20:32:54.120Z".to_owned(),
            captured_at: "2026-11-20T20:32:56.004Z".to_owned(),
            options: json!({}),
            browser: None,
            grabd_version: "0.2.0".to_owned(),
            files: Vec::new(),
        }
    }

    fn key(seed: u8) -> SigningKey {
        SigningKey::of_seed(&[seed; 32]).unwrap()
    }

    fn package(test: bool) -> Vec<u8> {
        let file = PackageFile { name: "image.png".into(), media_type: "image/png".into(), content: vec![1, 2, 3] };
        let mut package = Vec::new();
        let signed = Contents::new(manifest(test), vec![file]).unwrap().sign(&key(1), None).unwrap();
        signed.write(&mut package).unwrap();
        package
    }

    async fn verified(package: &[u8], keys: Option<String>) -> Result<Exit, Failure> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("evidence.zip");
        std::fs::write(&path, package).unwrap();
        let key = keys.map(|keys| {
            let path = directory.path().join("keys");
            std::fs::write(&path, keys).unwrap();
            path
        });
        verify(true, &VerifyArgs { file: path, key, service: None }).await
    }

    #[tokio::test]
    async fn exit_code_says_what_was_proven() {
        let [own, other] = [1, 2].map(|seed| key(seed).public_key());
        let set = json!({ "keys": [other.to_jwk(), own.to_jwk()] }).to_string();
        let mut changed = package(false);
        changed[40] ^= 1;
        for (package, keys, expected) in [
            (package(false), Some(own.to_pem()), Exit::Done),
            (package(false), Some(set), Exit::Done),
            (package(false), Some(other.to_pem()), Exit::Failed),
            (package(false), None, Exit::Unproven),
            (package(true), Some(own.to_pem()), Exit::Unproven),
            (changed, Some(own.to_pem()), Exit::Failed),
            (Vec::new(), None, Exit::Failed),
        ] {
            assert_eq!(verified(&package, keys).await.unwrap(), expected);
        }
        assert!(matches!(verified(&package(false), Some("no key".to_owned())).await, Err(Failure::Usage(_))));
    }

    #[test]
    fn hint_about_a_service_without_keys_names_the_option() {
        let url = Url::parse(&format!("https://example.com{EVIDENCE_KEYS_PATH}")).unwrap();
        let failure = Failure::UnexpectedResponse { url, status: reqwest::StatusCode::NOT_FOUND };
        assert!(failure.hint().is_some_and(|hint| hint.contains("--from")));
    }

    #[test]
    fn report_says_what_was_not_checked_and_cannot_change_a_terminal() {
        let verified = grabd_evidence::verify(&package(true)).unwrap();
        let text = report(Path::new("e.zip"), &verified, KeyCheck::Unchecked);
        assert!(text.contains("NOT checked") && text.contains("TEST") && !text.contains('\u{1b}'), "{text}");
        let text = report(Path::new("e.zip"), &verified, KeyCheck::Trusted);
        assert!(text.contains("a key that you trust") && !text.contains("NOT checked"), "{text}");
        let missing = grabd_evidence::Invalid::Missing("\u{1b}[2J".to_owned());
        let text = refusal(Path::new("e.zip"), &format!("The evidence is not valid: {missing}."));
        assert!(text.starts_with("e.zip: The evidence is not valid: ") && !text.contains('\u{1b}'), "{text}");
    }
}
