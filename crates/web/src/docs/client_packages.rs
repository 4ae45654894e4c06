//! The packages of the client libraries that the service offers for download.

use std::fmt::Write;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use grabd_http::{etag_of_bytes, with_etag};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};

use super::PACKAGES;

/// The text in the Markdown that stands for the list of packages.
pub(super) const PLACEHOLDER: &str = "<!-- packages -->";
/// A package of a version may change until that version is released, so that clients ask again, with the tag.
const CACHED: &str = "public, max-age=300";
/// The maximum length of a file's name.
const MAX_NAME: usize = 100;

/// Shown instead of the list if there are none.
const NONE: &str = "This service has no packages. In a checkout of grabd, this builds them, where a service that cargo has built \
                    finds them at its next start:\n\n```sh\nscript/sdk\n```\n";

/// The packages of the client libraries, in the order in which they are listed.
#[derive(Debug, Default)]
pub struct ClientPackages(Vec<ClientPackage>);

/// A file that can be downloaded.
#[derive(Debug)]
struct ClientPackage {
    kind: Kind,
    name: String,
    bytes: Bytes,
    sha256: String,
}

/// What a package is for, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Cli,
    Python,
    TypeScript,
    N8n,
    Protos,
    Skill,
}

impl ClientPackages {
    /// Whether a file with this name is a package: a wheel, a package of npm, with a library, the command line client or the node
    /// for n8n, or an archive of the gRPC contract or of the skill.
    pub fn is_package(name: &str) -> bool {
        Kind::of(name).is_some()
    }

    /// These files, by name and content. Those that are no packages are left out.
    pub fn new(files: Vec<(String, Vec<u8>)>) -> Self {
        let package = |(name, bytes): (String, Vec<u8>)| {
            let kind = Kind::of(&name)?;
            Some(ClientPackage { kind, sha256: sha256(&bytes), name, bytes: bytes.into() })
        };
        let mut packages: Vec<ClientPackage> = files.into_iter().filter_map(package).collect();
        packages.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Self(packages)
    }

    /// The response with the package of this name. None if there is none.
    pub(super) fn response(&self, name: &str, request: &HeaderMap) -> Option<Response> {
        let package = self.0.iter().find(|package| package.name == name)?;
        // The characters of a name need no escape.
        let disposition = format!("attachment; filename=\"{}\"", package.name);
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(package.kind.media_type())),
            (CACHE_CONTROL, HeaderValue::from_static(CACHED)),
            (CONTENT_DISPOSITION, HeaderValue::from_str(&disposition).ok()?),
        ];
        let response = (headers, package.bytes.clone()).into_response();
        Some(with_etag(response, etag_of_bytes(&package.bytes), request))
    }

    /// The table of all packages, and the command for each, for the service at `origin`.
    pub(super) fn markdown(&self, origin: &str) -> String {
        if self.0.is_empty() {
            return NONE.to_owned();
        }
        let mut text =
            "This service offers them for download:\n\n| Package | Size | SHA-256 |\n|---|---|---|\n".to_owned();
        for package in &self.0 {
            let ClientPackage { name, bytes, sha256, .. } = package;
            let _ = writeln!(text, "| [{name}]({}) | {} | `{sha256}` |", package.url(origin), size(bytes.len()));
        }
        for package in &self.0 {
            let _ = write!(text, "\n{}:\n\n```sh\n{}\n```\n", package.kind.title(), package.command(origin));
        }
        text
    }
}

impl ClientPackage {
    fn url(&self, origin: &str) -> String {
        format!("{origin}{PACKAGES}/{}", self.name)
    }

    /// The command that installs it. pip compares the checksum, and npm keeps one in its lock file.
    fn command(&self, origin: &str) -> String {
        let url = self.url(origin);
        match self.kind {
            Kind::Cli => format!("npx --yes {url} --help"),
            Kind::Python => format!("pip install \"{url}#sha256={}\"", self.sha256),
            Kind::TypeScript => format!("npm install {url}"),
            Kind::N8n => format!("npm install --prefix ~/.n8n/nodes --legacy-peer-deps {url}"),
            Kind::Protos => format!("curl -fsSO {url} && tar -xzf {}", self.name),
            Kind::Skill => format!("mkdir -p ~/.claude/skills && curl -fsS {url} | tar -xzC ~/.claude/skills"),
        }
    }
}

impl Kind {
    /// The kind of a file by its name. None if it is no package.
    fn of(name: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
        if name.len() > MAX_NAME || !name.bytes().all(is_allowed) {
            return None;
        }
        if let Some(rest) = name.strip_prefix("n8n-nodes-grabd-") {
            return rest.ends_with(".tgz").then_some(Self::N8n);
        }
        if !name.starts_with("grabd-") {
            return None;
        }
        if name.ends_with("-py3-none-any.whl") {
            Some(Self::Python)
        } else if name.starts_with("grabd-cli-") && name.ends_with(".tgz") {
            Some(Self::Cli)
        } else if name.ends_with(".tgz") {
            Some(Self::TypeScript)
        } else if name == "grabd-protos.tar.gz" {
            Some(Self::Protos)
        } else if name == "grabd-skill.tar.gz" {
            Some(Self::Skill)
        } else {
            None
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Cli => "The command line client for Linux, run by npx of Node.js; `npm install --global` keeps it",
            Self::Python => "Python 3.10 or later",
            Self::TypeScript => "Node.js 20 or later, and other runtimes that use npm",
            Self::N8n => "A node for n8n that you host yourself, which must be started again afterwards",
            Self::Protos => "The gRPC contract, to generate clients in other languages",
            Self::Skill => "A skill for Claude, which tells it how to capture pages with this service",
        }
    }

    const fn media_type(self) -> &'static str {
        match self {
            // A wheel is a zip archive.
            Self::Python => "application/zip",
            Self::Cli | Self::TypeScript | Self::N8n | Self::Protos | Self::Skill => "application/gzip",
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// `35.6 kB`.
fn size(bytes: usize) -> String {
    format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use http::header::{ETAG, IF_NONE_MATCH};

    use super::*;

    fn packages() -> ClientPackages {
        let names = [
            "grabd-protos.tar.gz",
            "grabd-cli-linux-x64.tgz",
            "notes.txt",
            "n8n-nodes-grabd-0.2.0.tgz",
            "grabd-0.2.0.tgz",
            "grabd-0.2.0-py3-none-any.whl",
        ];
        ClientPackages::new(names.map(|name| (name.to_owned(), name.as_bytes().to_vec())).into())
    }

    #[test]
    fn only_files_named_like_a_package_are_packages() {
        let long = format!("grabd-{}.tgz", "1".repeat(MAX_NAME));
        for (name, expected) in [
            ("grabd-0.2.0.tgz", true),
            ("grabd-cli-linux-x64.tgz", true),
            ("grabd-0.3.0rc1-py3-none-any.whl", true),
            ("grabd-protos.tar.gz", true),
            ("n8n-nodes-grabd-0.2.0.tgz", true),
            ("n8n-nodes-grabd-0.2.0.tar.gz", false),
            ("n8n-nodes-other-0.2.0.tgz", false),
            ("grabd-other.tar.gz", false),
            ("grabd-../x.tgz", false),
            ("grabd-\".tgz", false),
            ("other-0.2.0.tgz", false),
            ("grabd-0.2.0.tgz.sha256", false),
            ("", false),
            (&long, false),
        ] {
            assert_eq!(ClientPackages::is_package(name), expected, "{name}");
        }
    }

    #[test]
    fn package_is_sent_with_its_type_and_not_again_to_those_who_have_it() {
        for (name, media_type) in [
            ("grabd-0.2.0-py3-none-any.whl", "application/zip"),
            ("grabd-0.2.0.tgz", "application/gzip"),
            ("n8n-nodes-grabd-0.2.0.tgz", "application/gzip"),
            ("grabd-protos.tar.gz", "application/gzip"),
        ] {
            let response = packages().response(name, &HeaderMap::new()).unwrap();
            assert_eq!(
                (response.status().as_u16(), &response.headers()[CONTENT_TYPE]),
                (200, &HeaderValue::from_static(media_type))
            );
            let request = HeaderMap::from_iter([(IF_NONE_MATCH, response.headers()[ETAG].clone())]);
            assert_eq!(packages().response(name, &request).unwrap().status(), 304);
        }
        assert!(packages().response("notes.txt", &HeaderMap::new()).is_none());
        assert!(packages().response("../grabd-0.2.0.tgz", &HeaderMap::new()).is_none());
    }

    #[test]
    fn list_has_size_checksum_and_command_of_each_package() {
        let text = packages().markdown("https://grabs.example.com");
        let url = "https://grabs.example.com/docs/packages/grabd-0.2.0-py3-none-any.whl";
        let sum = sha256(b"grabd-0.2.0-py3-none-any.whl");
        for part in [
            format!("| [grabd-0.2.0-py3-none-any.whl]({url}) | 0.0 kB | `{sum}` |\n"),
            format!("\npip install \"{url}#sha256={sum}\"\n"),
            "\nnpx --yes https://grabs.example.com/docs/packages/grabd-cli-linux-x64.tgz --help\n".to_owned(),
            "\nnpm install https://grabs.example.com/docs/packages/grabd-0.2.0.tgz\n".to_owned(),
            "--legacy-peer-deps https://grabs.example.com/docs/packages/n8n-nodes-grabd-0.2.0.tgz\n".to_owned(),
            "\ncurl -fsSO https://grabs.example.com/docs/packages/grabd-protos.tar.gz && tar -xzf grabd-protos.tar.gz\n"
                .to_owned(),
        ] {
            assert!(text.contains(&part), "{part}: {text}");
        }
        assert!(ClientPackages::default().markdown("https://grabs.example.com").contains("script/sdk"));
        assert_eq!(size(35_640), "35.6 kB");
    }
}
