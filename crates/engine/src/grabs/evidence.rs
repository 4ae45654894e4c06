//! The signed package about a capture (`evidence`): the image, the page as MHTML, the report, the headers of the response, and a
//! manifest.

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Timestamp;
use grabd_domain::capture::{AttachmentName, CaptureSpec, FileKind, Format};
use grabd_domain::grabs::{FileKey, Grab, GrabFile, ImageKey, RenderMetadata};
use grabd_domain::ids::GrabId;
use grabd_domain::limits::EVIDENCE_LIMIT;
use grabd_evidence::{Contents, MANIFEST_VERSION, Manifest, PackageFile};
use grabd_images::{LocalCopy, Upload};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::derived::{Derived, Error};
use super::not_completed::NotCompleted;
use crate::evidence::{add_timestamp, keys};
use crate::placeholder::Placeholder;
use crate::random;
use crate::service::Core;

/// Memory for the manifest, the headers and the signature, beside the files.
const MANIFEST_BYTES: u64 = 1 << 20;

/// The version of grabd in packages of test keys. They are made again whenever they are read, by whatever version.
const TEST_VERSION: &str = "test";

/// Files of the page that are made for the package only.
pub(super) type OnlyPacked = Vec<(FileKind, LocalCopy)>;

/// What a package is about.
struct Subject {
    grab: GrabId,
    /// Of the image.
    format: Format,
    spec: CaptureSpec,
    created_at: Timestamp,
    captured_at: Timestamp,
    is_test: bool,
    final_url: Option<String>,
    http_status: Option<u16>,
}

/// The files that a package is made of.
struct Files {
    image: Vec<u8>,
    mhtml: Vec<u8>,
    report: Vec<u8>,
}

/// What is read of the report.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Report {
    response: Option<DocumentResponse>,
    browser: Option<String>,
}

/// The response with the document.
#[derive(Deserialize)]
struct DocumentResponse {
    protocol: Value,
    tls: Option<Value>,
    /// Without cookies, credentials and secrets of the caller.
    headers: Value,
}

/// Makes the package about a stored image, which was received at this time, stores it beside the image within the limit, and
/// adds it to the metadata.
///
/// # Errors
/// See [`NotCompleted`]. A file that is left behind is deleted with the image.
pub(super) async fn add(
    core: &Core,
    (grab, received_at): (GrabId, Timestamp),
    (key, only_packed): (&ImageKey, OnlyPacked),
    metadata: &mut RenderMetadata,
    limit: Duration,
) -> Result<(), NotCompleted> {
    let found = core.store.grabs().find_grabs(&[grab]).await.map_err(NotCompleted::Database)?;
    let name = AttachmentName::Also(FileKind::Evidence);
    let upload = core.grabs.images.begin_file(key, name).await.map_err(NotCompleted::NotStored)?;
    let made = timeout(EVIDENCE_LIMIT, make(core, (found, received_at), (key, only_packed), metadata, upload)).await;
    let upload = made
        .map_err(|_| Error::TooSlow)
        .and_then(|made| made)
        .map_err(|error| error.not_completed(Derived::Evidence))?;
    let bytes = upload.bytes();
    upload.finish(limit).await.map_err(NotCompleted::NotStored)?;
    // The last of the kinds, in whose order files are listed.
    metadata.files.push(GrabFile { kind: FileKind::Evidence, key: FileKey::new(random::random()), bytes });
    Ok(())
}

/// Writes the package to `upload`, which is given back.
async fn make(
    core: &Core,
    (found, received_at): (Vec<Grab>, Timestamp),
    (key, only_packed): (&ImageKey, OnlyPacked),
    metadata: &mut RenderMetadata,
    mut upload: Upload,
) -> Result<Upload, Error> {
    let Grab { id, spec, created_at, .. } = found.into_iter().next().ok_or(Error::Deleted)?;
    let signer = keys::signing_key(core).await?;
    let copies = copies(core, key, only_packed).await?;
    let (sizes, copies) = core.tasks.spawn_blocking(move || sizes(&copies).map(|sizes| (sizes, copies))).await??;
    let bytes = sizes.saturating_add(MANIFEST_BYTES);
    if bytes > FileKind::Evidence.max_bytes() {
        return Err(Error::DrawingTooLarge);
    }
    let memory = core.grabs.memory.reserve(bytes, EVIDENCE_LIMIT).await?;
    let subject = Subject {
        grab: id,
        format: key.format(),
        spec,
        created_at,
        captured_at: received_at,
        final_url: metadata.final_url.clone(),
        http_status: metadata.http_status,
        is_test: false,
    };
    // The task keeps its memory, also when it is not waited for any more.
    let packed = core.tasks.spawn_blocking(move || Ok::<_, Error>((contents(&subject, read(&copies)?)?, memory)));
    let (contents, memory) = packed.await??;
    let timestamp = add_timestamp(core, contents.manifest(), metadata).await;
    let written = core.tasks.spawn_blocking(move || {
        let _memory = memory;
        contents.sign(&signer, timestamp)?.write(&mut upload).map_err(Error::Unwritable)?;
        Ok::<_, Error>(upload)
    });
    written.await?
}

/// The package of a placeholder. It is not stored, but made again whenever it is read.
///
/// # Errors
/// Those of the placeholder and of the key.
pub(super) async fn of_placeholder(
    core: &Core,
    placeholder: &Placeholder,
    (grab, created_at): (GrabId, Timestamp),
    spec: &CaptureSpec,
) -> Result<Bytes, Error> {
    let signer = keys::signing_key(core).await?;
    let file = async |kind: FileKind| {
        Ok::<_, Error>(placeholder.file(spec, AttachmentName::Also(kind)).await?.unwrap_or_default())
    };
    let (mhtml, report) = (file(FileKind::Mhtml).await?, file(FileKind::Report).await?);
    let image = placeholder.draw(spec).await?;
    let subject = Subject {
        grab,
        format: spec.format,
        spec: spec.clone(),
        created_at,
        captured_at: created_at,
        final_url: Some(spec.url.as_str().to_owned()),
        http_status: Some(200),
        is_test: true,
    };
    let made = core.tasks.spawn_blocking(move || {
        let files = Files { image: image.to_vec(), mhtml: mhtml.to_vec(), report: report.to_vec() };
        let mut package = Vec::new();
        contents(&subject, files)?.sign(&signer, None)?.write(&mut package).map_err(Error::Unwritable)?;
        Ok::<_, Error>(Bytes::from(package))
    });
    made.await?
}

/// The files of a package on this machine.
struct Copies {
    image: LocalCopy,
    mhtml: LocalCopy,
    report: LocalCopy,
}

async fn copies(core: &Core, key: &ImageKey, only_packed: OnlyPacked) -> Result<Copies, Error> {
    let images = &core.grabs.images;
    let (mut mhtml, mut report) = (None, None);
    for (kind, copy) in only_packed {
        if kind == FileKind::Mhtml {
            mhtml = Some(copy);
        } else {
            report = Some(copy);
        }
    }
    let stored = async |kind: FileKind| images.attachment(key, AttachmentName::Also(kind)).local_copy().await;
    if mhtml.is_none() {
        mhtml = stored(FileKind::Mhtml).await?;
    }
    if report.is_none() {
        report = stored(FileKind::Report).await?;
    }
    Ok(Copies {
        image: images.image(key).local_copy().await?.ok_or(Error::Deleted)?,
        mhtml: mhtml.ok_or(Error::Deleted)?,
        report: report.ok_or(Error::Deleted)?,
    })
}

/// The bytes of all files together.
fn sizes(Copies { image, mhtml, report }: &Copies) -> Result<u64, Error> {
    let size = |copy: &LocalCopy| std::fs::metadata(copy.path()).map(|file| file.len()).map_err(Error::Unreadable);
    Ok(size(image)?.saturating_add(size(mhtml)?).saturating_add(size(report)?))
}

fn read(Copies { image, mhtml, report }: &Copies) -> Result<Files, Error> {
    let content = |copy: &LocalCopy| std::fs::read(copy.path()).map_err(Error::Unreadable);
    Ok(Files { image: content(image)?, mhtml: content(mhtml)?, report: content(report)? })
}

/// The manifest and the files.
fn contents(subject: &Subject, Files { image, mhtml, report }: Files) -> Result<Contents, Error> {
    let Report { response, browser } = serde_json::from_slice(&report)?;
    let (protocol, tls, headers) = match response {
        Some(DocumentResponse { protocol, tls, headers }) => (protocol, tls, headers),
        None => (Value::Null, None, json!([])),
    };
    let headers = json!({
        "url": subject.final_url, "status": subject.http_status, "protocol": protocol, "headers": headers,
    });
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        test: subject.is_test,
        grab_id: subject.grab.to_string(),
        requested_url: subject.spec.url.as_str().to_owned(),
        final_url: subject.final_url.clone(),
        http_status: subject.http_status,
        tls,
        created_at: subject.created_at.to_string(),
        captured_at: subject.captured_at.to_string(),
        options: serde_json::to_value(subject.spec.without_secrets())?,
        browser,
        grabd_version: if subject.is_test { TEST_VERSION } else { env!("CARGO_PKG_VERSION") }.to_owned(),
        files: Vec::new(),
    };
    let file = |name: String, media_type: &str, content: Vec<u8>| PackageFile {
        name,
        media_type: media_type.to_owned(),
        content,
    };
    let of_page = |kind: FileKind, content| file(kind.file_name().to_owned(), kind.media_type(), content);
    let files = vec![
        file(format!("image.{}", subject.format.as_str()), subject.format.media_type(), image),
        of_page(FileKind::Mhtml, mhtml),
        of_page(FileKind::Report, report),
        file("headers.json".to_owned(), "application/json", serde_json::to_vec_pretty(&headers)?),
    ];
    Ok(Contents::new(manifest, files)?)
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;
    use grabd_evidence::{SigningKey, verify};
    use uuid::Uuid;

    use super::*;

    const PROXY: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

    fn subject() -> Subject {
        let headers = [("X-Token".to_owned(), grabd_domain::capture::OptionValue::Text("hidden".to_owned()))].into();
        let request = CaptureRequest {
            url: Some("https://example.com/".into()),
            headers: Some(grabd_domain::capture::Secret(headers)),
            evidence: Some(true),
            proxy: Some(PROXY.into()),
            ..CaptureRequest::default()
        };
        Subject {
            grab: GrabId(Uuid::from_u128(7)),
            format: Format::Png,
            spec: CaptureSpec::parse(&request).unwrap(),
            created_at: Timestamp::from_ms(1_795_206_774_120),
            captured_at: Timestamp::from_ms(1_795_206_776_004),
            final_url: Some("https://example.com/end".to_owned()),
            http_status: Some(200),
            is_test: false,
        }
    }

    #[test]
    fn package_has_the_files_and_says_what_the_report_found() {
        let report = br#"{"response": {"protocol": "h2", "media_type": "text/html", "tls": {"issuer": "R11"},
            "headers": [{"name": "server", "value": "x"}]}, "browser": "Chromium 150.0", "requests": []}"#;
        let files = Files { image: b"image".to_vec(), mhtml: b"page".to_vec(), report: report.to_vec() };
        let mut package = Vec::new();
        let signer = SigningKey::of_seed(&[7; 32]).unwrap();
        contents(&subject(), files).unwrap().sign(&signer, None).unwrap().write(&mut package).unwrap();
        let manifest = verify(&package).unwrap().manifest;
        let names: Vec<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["image.png", "page.mhtml", "report.json", "headers.json"]);
        assert_eq!(
            (manifest.tls, manifest.browser.as_deref()),
            (Some(json!({ "issuer": "R11" })), Some("Chromium 150.0"))
        );
        assert_eq!((&manifest.options["headers"], &manifest.options["evidence"]), (&json!(true), &json!(true)));
        assert_eq!(manifest.options["proxy"], json!(PROXY));
        assert_eq!(
            (&*manifest.created_at, &*manifest.captured_at),
            ("2026-11-20T20:32:54.120Z", "2026-11-20T20:32:56.004Z")
        );
        assert!(!package.windows(6).any(|part| part == b"hidden"));
    }

    #[test]
    fn largest_package_that_is_made_is_one_that_is_verified() {
        assert_eq!(FileKind::Evidence.max_bytes(), grabd_evidence::MAX_PACKAGE_BYTES);
    }

    #[test]
    fn report_of_a_placeholder_has_no_response() {
        let files = Files { image: Vec::new(), mhtml: Vec::new(), report: br#"{"requests": []}"#.to_vec() };
        assert!(contents(&subject(), files).is_ok());
        let broken = Files { image: Vec::new(), mhtml: Vec::new(), report: b"[".to_vec() };
        assert!(matches!(contents(&subject(), broken), Err(Error::InvalidElements(_))));
    }
}
