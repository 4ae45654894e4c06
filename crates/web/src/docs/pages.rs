//! The list of pages, in the order of the navigation.

/// A Markdown file of the repository, or the file of settings.
pub(super) struct Source {
    /// The file's path in the repository. Links between files are resolved with it.
    pub(super) file: &'static str,
    /// The last part of the URL.
    pub(super) slug: &'static str,
    pub(super) section: &'static str,
    /// One sentence for the lists of pages.
    pub(super) summary: &'static str,
    /// The content.
    pub(super) text: &'static str,
}

macro_rules! source {
    ($file:literal, $slug:literal, $section:expr, $summary:literal) => {
        Source {
            file: $file,
            slug: $slug,
            section: $section,
            summary: $summary,
            text: include_str!(concat!("../../../../", $file)),
        }
    };
}

const START: &str = "Start";
const GUIDES: &str = "Guides";
/// The section that begins with the API reference.
pub(super) const REFERENCE: &str = "Reference";
/// The section of the pages for operators.
pub(super) const HOSTING: &str = "Self-hosting";
/// The page before [`REFERENCE`].
pub(super) const BEFORE_REFERENCE: &str = "cli";

pub(super) const SOURCES: &[Source] = &[
    source!("docs/guide/QUICKSTART.md", "quickstart", START, "From a key to the first image in three steps."),
    source!("docs/guide/CAPTURES.md", "captures", START, "Synchronous and asynchronous captures, and the answer."),
    source!("docs/guide/PICTURE.md", "picture", GUIDES, "Which option solves which problem."),
    source!("docs/BLOCKING.md", "blocking", GUIDES, "Pages without ads, trackers and cookie banners."),
    source!("docs/FILES.md", "files", GUIDES, "HTML, text, Markdown, PDF and a report of the same page."),
    source!("docs/LINKS.md", "links", GUIDES, "Signed links that capture a page without a key."),
    source!("docs/guide/RETRIES.md", "retries", GUIDES, "How to be charged once, and what to retry."),
    source!("docs/RATES.md", "rates", GUIDES, "Rate limits: what is counted, and what an answer says of it."),
    source!("docs/WEBHOOKS.md", "webhooks", GUIDES, "Messages to your server when a capture has ended."),
    source!("docs/MCP.md", "mcp", GUIDES, "Screenshots for assistants and agents."),
    source!("docs/CONNECTING.md", "connecting", GUIDES, "Sign-in of apps by OAuth."),
    source!("docs/GRPC.md", "grpc", GUIDES, "The same services over gRPC, for callers inside your network."),
    source!("docs/SDKS.md", "sdks", GUIDES, "Client libraries for TypeScript and Python, and their packages."),
    source!("sdk/python/README.md", "python", GUIDES, "Installation, examples and reference for Python."),
    source!("sdk/typescript/README.md", "typescript", GUIDES, "The same for TypeScript and JavaScript."),
    source!("docs/guide/AUTOMATION.md", "automation", GUIDES, "Captures in GitHub Actions and in other tools."),
    source!("docs/CLI.md", "cli", GUIDES, "Captures from a shell."),
    source!("docs/OPTIONS.md", "options", REFERENCE, "All capture options with their types and limits."),
    source!("docs/guide/ERRORS.md", "errors", REFERENCE, "Each error code, its meaning, and what to do."),
    source!("CHANGELOG.md", "changelog", REFERENCE, "What has changed, by version."),
    source!("docs/operating/README.md", "operating", HOSTING, "The pages for operators."),
    source!("docs/operating/install.md", "install", HOSTING, "Build, settings, systemd, containers and proxies."),
    source!(
        "crates/grabd/src/config/default.toml",
        "settings",
        HOSTING,
        "Every key with its default and its environment variable."
    ),
    source!("docs/DEPLOYING.md", "deploying", HOSTING, "Installer, image, Compose and Kubernetes."),
    source!("docs/operating/browser.md", "browser", HOSTING, "Its sandbox, resources and filter lists."),
    source!("docs/operating/accounts.md", "accounts", HOSTING, "Teams, keys, people, apps and operators."),
    source!("docs/operating/limits.md", "limits", HOSTING, "Limits of teams, clients and accounts."),
    source!("docs/operating/mail.md", "mail", HOSTING, "The mail server and verified addresses."),
    source!("docs/operating/billing.md", "billing", HOSTING, "Packages of credits with Stripe."),
    source!("docs/operating/monitoring.md", "monitoring", HOSTING, "Health, metrics and capacity."),
    source!("docs/RUNBOOK.md", "runbook", HOSTING, "What to do when an alert fires."),
    source!("docs/operating/retention.md", "retention", HOSTING, "What is deleted when, and disk space."),
    source!("docs/IMAGES.md", "images", HOSTING, "Images in a directory or in an object store."),
    source!("docs/operating/backup.md", "backup", HOSTING, "Backup, restore and the key of secrets."),
    source!("docs/operating/upgrade.md", "upgrade", HOSTING, "How to install another version."),
    source!("docs/FLEET.md", "fleet", HOSTING, "Several processes on one PostgreSQL database."),
];
