//! The list of pages, in the order of the navigation.

/// A Markdown file of the repository, or the file of settings.
pub(super) struct Source {
    /// The file's path in the repository. Links between files are resolved with it.
    pub(super) file: &'static str,
    /// The last part of the URL.
    pub(super) slug: &'static str,
    pub(super) section: &'static str,
    pub(super) audience: Audience,
    /// One sentence for the lists of pages.
    pub(super) summary: &'static str,
    /// The content.
    pub(super) text: &'static str,
}

/// For whom a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Audience {
    /// Everybody who uses the service.
    Customers,
    /// Those who run it.
    Operators,
}

impl Audience {
    /// The heading of their pages.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Customers => "For customers",
            Self::Operators => "For operators",
        }
    }
}

macro_rules! source {
    ($file:literal, $slug:literal, $section:expr, $summary:literal) => {
        source!(Audience::Customers, $file, $slug, $section, $summary)
    };
    ($audience:expr, $file:literal, $slug:literal, $section:expr, $summary:literal) => {
        Source {
            file: $file,
            slug: $slug,
            section: $section,
            audience: $audience,
            summary: $summary,
            text: include_str!(concat!("../../../../", $file)),
        }
    };
}

const START: &str = "Start";
const GUIDES: &str = "Guides";
/// The section of the API reference, whose pages are after [`BEFORE_REFERENCE`].
pub(super) const API: &str = "API";
const REFERENCE: &str = "Reference";
const OPERATORS: Audience = Audience::Operators;
const SETUP: &str = "Set up";
const OPERATION: &str = "Run";
/// The page before the API reference.
pub(super) const BEFORE_REFERENCE: &str = "cli";

pub(super) const SOURCES: &[Source] = &[
    source!("docs/guide/QUICKSTART.md", "quickstart", START, "From a key to the first image in three steps."),
    source!("docs/guide/CAPTURES.md", "captures", START, "Synchronous and asynchronous captures, and the answer."),
    source!("docs/guide/PICTURE.md", "picture", GUIDES, "Which option solves which problem."),
    source!("docs/BLOCKING.md", "blocking", GUIDES, "Pages without ads, trackers, banners and chats."),
    source!("docs/FILES.md", "files", GUIDES, "HTML, text, Markdown, PDF, MHTML, HAR and a report of the same page."),
    source!("docs/EVIDENCE.md", "evidence", GUIDES, "Signed packages that prove what a page showed."),
    source!("docs/LINKS.md", "links", GUIDES, "Signed links that capture a page without a key."),
    source!("docs/guide/RETRIES.md", "retries", GUIDES, "How to be charged once, and what to retry."),
    source!("docs/RATES.md", "rates", GUIDES, "Rate limits: what is counted, and what an answer says of it."),
    source!("docs/WEBHOOKS.md", "webhooks", GUIDES, "Messages to your server when a capture has ended."),
    source!(
        "docs/MONITORS.md",
        "monitors",
        GUIDES,
        "Pages that are captured by a schedule, and alerts when they change."
    ),
    source!("docs/PROXIES.md", "proxies", GUIDES, "Pages that are loaded through a server of yours."),
    source!("docs/SITES.md", "sites", GUIDES, "Many pages of one site, found from its links or its sitemap."),
    source!("docs/MCP.md", "mcp", GUIDES, "Screenshots for assistants and agents."),
    source!("docs/CONNECTING.md", "connecting", GUIDES, "Sign-in of apps by OAuth."),
    source!("docs/GRPC.md", "grpc", GUIDES, "The same services over gRPC, for callers inside your network."),
    source!(
        "docs/SDKS.md",
        "sdks",
        GUIDES,
        "Client libraries for TypeScript and Python, a node for n8n, and their packages."
    ),
    source!("sdk/python/README.md", "python", GUIDES, "Installation, examples and reference for Python."),
    source!("sdk/typescript/README.md", "typescript", GUIDES, "The same for TypeScript and JavaScript."),
    source!("sdk/n8n/README.md", "n8n", GUIDES, "A node that captures pages in workflows of n8n."),
    source!("docs/guide/AUTOMATION.md", "automation", GUIDES, "Captures in GitHub Actions and in other tools."),
    source!("docs/CLI.md", "cli", GUIDES, "Captures from a shell."),
    source!("docs/OPTIONS.md", "options", REFERENCE, "All capture options with their types and limits."),
    source!("docs/guide/ERRORS.md", "errors", REFERENCE, "Each error code, its meaning, and what to do."),
    source!("CHANGELOG.md", "changelog", REFERENCE, "What has changed, by version."),
    source!(OPERATORS, "docs/operating/README.md", "operating", SETUP, "The pages for operators."),
    source!(
        OPERATORS,
        "docs/operating/install.md",
        "install",
        SETUP,
        "Build, settings, systemd, containers and proxies."
    ),
    source!(
        OPERATORS,
        "crates/grabd/src/config/default.toml",
        "settings",
        SETUP,
        "Every key with its default and its environment variable."
    ),
    source!(OPERATORS, "docs/DEPLOYING.md", "deploying", SETUP, "Installer, image, Compose and Kubernetes."),
    source!(OPERATORS, "docs/operating/browser.md", "browser", SETUP, "Its sandbox, resources and filter lists."),
    source!(OPERATORS, "docs/operating/accounts.md", "accounts", SETUP, "Teams, keys, people, apps and operators."),
    source!(OPERATORS, "docs/operating/limits.md", "limits", SETUP, "Limits of teams, clients and accounts."),
    source!(OPERATORS, "docs/operating/identity.md", "identity", SETUP, "Signed requests, which sites can allow."),
    source!(OPERATORS, "docs/operating/mail.md", "mail", SETUP, "The mail server and verified addresses."),
    source!(OPERATORS, "docs/operating/billing.md", "billing", SETUP, "Packages of credits with Stripe."),
    source!(
        OPERATORS,
        "docs/operating/evidence.md",
        "evidence-keys",
        OPERATION,
        "The keys that sign evidence, and time stamps."
    ),
    source!(OPERATORS, "docs/operating/monitoring.md", "monitoring", OPERATION, "Health, metrics and capacity."),
    source!(OPERATORS, "docs/RUNBOOK.md", "runbook", OPERATION, "What to do when an alert fires."),
    source!(OPERATORS, "docs/operating/retention.md", "retention", OPERATION, "What is deleted when, and disk space."),
    source!(OPERATORS, "docs/IMAGES.md", "images", OPERATION, "Images in a directory or in an object store."),
    source!(OPERATORS, "docs/operating/backup.md", "backup", OPERATION, "Backup, restore and the key of secrets."),
    source!(OPERATORS, "docs/operating/upgrade.md", "upgrade", OPERATION, "How to install another version."),
    source!(OPERATORS, "docs/FLEET.md", "fleet", OPERATION, "Several processes on one PostgreSQL database."),
];
