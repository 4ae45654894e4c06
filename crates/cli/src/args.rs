//! The command line arguments.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use grabd_api::words::text_formats;

pub(crate) use crate::format::Format;
use crate::monitor_args::MonitorCommand;
use crate::options::OptionArgs;
use crate::proxy_args::ProxyCommand;
use crate::share::share;
use crate::site_args::SiteArgs;
use crate::verify::VerifyArgs;

const EXAMPLES: &str = "\
Examples:
  grab https://example.com -o page.png          one image into a file
  grab https://example.com -o - | file -        write the image to stdout
  grab --full-page --format webp https://example.com https://example.org -o shots/
  grab --from urls.txt -o shots/ --jobs 8       many pages, eight at a time
  grab --async --wait 120 https://example.com   queue the capture and wait for it
  grab --also pdf,markdown https://example.com  save a PDF and Markdown beside the image
  grab --html invoice.html -o invoice.png       capture a local HTML document
  grab site https://example.com --max-pages 20  many pages of a site, found by their links

Exit codes:
  0  success                        4  no credits left
  1  a capture failed               5  still rate limited after all retries
  2  invalid arguments              6  the service cannot be reached
  3  not signed in, or not allowed  7  internal error, here or in the service
  8  a page changed by more than --fail-over, or is not in the baseline
  9  evidence is valid, but the key that signed it was not checked, or it is a test
  130 interrupted";

/// Capture web pages through a grabd service
#[derive(Debug, Parser)]
#[command(name = "grab", version, about, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The service and the credentials.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// Address of the service, such as `https://grabd.example/v1`
    #[arg(long, global = true, env = "GRAB_BASE_URL", value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    /// API key; prefer GRAB_API_KEY, because other users of this machine can see command line arguments
    #[arg(long, global = true, env = "GRAB_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
    /// Configuration file [default: grab/config.toml below XDG_CONFIG_HOME or ~/.config]
    #[arg(long, global = true, env = "GRAB_CONFIG", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON, one object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no progress and no summary
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// How many times to retry a request that is safe to repeat
    #[arg(long, global = true, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub(crate) retries: u32,
}

/// What to capture and how.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Capture")]
pub(crate) struct CaptureArgs {
    /// URLs of the pages
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) urls: Vec<String>,
    /// Read URLs from a file, one per line; empty lines and lines that begin with # are ignored; - is stdin
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
    /// Capture an HTML document instead of a page: a file, or - for stdin
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["urls", "from"])]
    pub(crate) html: Option<PathBuf>,
    /// The URL that the HTML document has [default: `https://html.example/`]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "html", conflicts_with_all = ["urls", "from"])]
    pub(crate) html_url: Option<String>,
    /// Where to write the image, and beside it the files of --also and --evidence, and the slices of --slice-height: a file, a directory (for any number of pages), or - for stdout [default: a file named
    /// after the page]
    #[arg(long, short, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    /// Capture without downloading the image
    #[arg(long, conflicts_with = "output")]
    pub(crate) no_download: bool,
    /// Skip pages whose output file already exists
    #[arg(long)]
    pub(crate) skip_existing: bool,
    /// Format of the image [default: from the extension of the output file, else png]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
    /// Queue the capture and print its id; with --wait, wait until it ends
    #[arg(long = "async")]
    pub(crate) queued: bool,
    /// Wait at most this many seconds for a queued capture (implies --async)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) wait: Option<u64>,
    /// Compare the pages with those of this file; if there is none, make it from them. Exit with 8 if a page changed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["html", "queued", "wait", "skip_existing"])]
    pub(crate) baseline: Option<PathBuf>,
    /// Make the file of --baseline again from the pages as they are now
    #[arg(long, requires = "baseline")]
    pub(crate) update_baseline: bool,
    /// With --baseline: a larger share of an image than this must have changed, from 0 (any change) to 1 [default: 0]
    #[arg(long, value_name = "RATIO", value_parser = share, requires = "baseline")]
    pub(crate) fail_over: Option<f64>,
    /// With --baseline: a directory for a report as a web page, with the images
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath, requires = "baseline")]
    pub(crate) report: Option<PathBuf>,
    /// Number of concurrent captures
    #[arg(long, short, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,
    /// Idempotency-Key: a repeated run with the same key returns the same results and is charged once. With several pages,
    /// the key of each is made from this one and from what is captured [default: a new key for each page]
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// All commands except capturing.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// List captures, newest first
    List(ListArgs),
    /// Print a text of one capture: what it says, its elements, its report or what changed
    Read(ReadArgs),
    /// Show one capture
    Show {
        /// Id of the capture
        id: String,
        /// Open the image in the browser
        #[arg(long)]
        open: bool,
        /// Download the image to a file; - is stdout
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Show what changed on a page since an earlier capture
    Diff(Box<DiffArgs>),
    /// Follow one capture until it ends
    Watch {
        /// Id of the capture
        id: String,
    },
    /// Delete the images of captures
    Delete {
        /// Ids of captures
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Show credits, plan and recent usage
    Usage,
    /// Show prices, and compare them with other providers
    Pricing {
        /// Compare only with this provider
        #[arg(long)]
        provider: Option<String>,
        /// Include all sources
        #[arg(long)]
        full: bool,
    },
    /// Sign in, in the browser or by a code
    Login {
        /// Print the URL instead of opening it. The browser must be on this machine
        #[arg(long)]
        no_browser: bool,
        /// Sign in by a code that you enter on another device. The default over SSH
        #[arg(long, conflicts_with = "no_browser")]
        device: bool,
        #[arg(long, env = "SSH_CONNECTION", hide = true, hide_env = true)]
        ssh_connection: Option<String>,
        /// Ask also to use webhooks and to delete captures
        #[arg(long)]
        manage: bool,
    },
    /// Sign out and revoke the tokens
    Logout,
    /// Show which credential is used
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Show and change the stored settings
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// Make a signed link, which captures a page and shows its image without a key
    Link(Box<LinkArgs>),
    /// Verify evidence offline: the signature, and that no byte was changed
    Verify(VerifyArgs),
    /// Manage webhooks, which report finished captures
    #[command(subcommand)]
    Webhooks(WebhookCommand),
    /// Watch pages: capture them by a schedule, and report when they change
    #[command(subcommand)]
    Monitor(MonitorCommand),
    /// Manage proxies, through which pages can be loaded
    #[command(subcommand)]
    Proxy(ProxyCommand),
    /// Capture many pages of a site, found by its links or its sitemap, and save them with a contact sheet
    Site(Box<SiteArgs>),
    /// Print shell completions
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// Commands on the credential.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Show the service, the credential and where it is from, and check that the service accepts it
    Status,
}

/// Commands on the stored settings.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show all settings and where each value is from; of secrets, only the end
    Show,
    /// Print the value that commands use
    Get {
        /// The setting
        setting: Setting,
    },
    /// Store a setting in the configuration file
    Set {
        /// The setting
        setting: Setting,
        /// The value; without it, or with -, it is read from stdin, where other users of this machine do not see it
        value: Option<String>,
    },
    /// Remove a setting from the configuration file
    Unset {
        /// The setting
        setting: Setting,
    },
}

/// Settings of the configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Setting {
    /// Address of the service
    BaseUrl,
    /// API key
    ApiKey,
    /// Link key of the API key that links belong to
    LinkKey,
    /// Secret that signs links
    LinkSecret,
}

/// Two captures to compare.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// Id of the earlier capture
    #[arg(value_name = "EARLIER", required_unless_present = "baseline")]
    pub(crate) earlier: Option<String>,
    /// Id of a capture that was compared with the earlier one, or a URL, which is captured for it [default: the page of
    /// the earlier capture]
    #[arg(value_name = "LATER")]
    pub(crate) later: Option<String>,
    /// Compare many pages: a file of earlier captures, one JSON object a line, as `grab --json` prints them; - is stdin
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["earlier", "later"])]
    pub(crate) baseline: Option<PathBuf>,
    /// Exit with 8 if a larger share of an image than this changed, from 0 (any change) to 1
    #[arg(long, value_name = "RATIO", value_parser = share)]
    pub(crate) fail_over: Option<f64>,
    /// Where to write the image of the difference, a PNG; with --baseline, a directory
    #[arg(long, short, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    /// With --baseline: a directory for a report as a web page, with the images
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath, requires = "baseline")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
    /// Number of concurrent captures with --baseline
    #[arg(long, short, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,
    /// Makes a repeated run return the same captures, charged once [default: new captures]
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// A link to make.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LinkArgs {
    /// URL of the page
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,
    /// Link key of the API key that the link belongs to
    #[arg(long, env = "GRAB_LINK_KEY", value_name = "KEY")]
    pub(crate) link_key: Option<String>,
    /// Secret that signs the link; prefer GRAB_LINK_SECRET, because other users of this machine can see command line
    /// arguments
    #[arg(long, env = "GRAB_LINK_SECRET", value_name = "SECRET", hide_env_values = true)]
    pub(crate) link_secret: Option<String>,
    /// When the link expires, in seconds since 1970, at most 366 days from now [default: at the end of the day, 30 days
    /// from now]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) expires: Option<u64>,
    /// Show an image of an error instead of JSON
    #[arg(long)]
    pub(crate) placeholder_on_error: bool,
    /// Format of the image [default: png]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}

/// Which captures are listed.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Maximum number of captures
    #[arg(long, value_name = "N", default_value_t = 25)]
    pub(crate) limit: u32,
    /// Only captures with this status
    #[arg(long)]
    pub(crate) status: Option<Status>,
    /// Only captures older than this one
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
    /// Only captures of URLs that contain this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) url: Option<String>,
    /// Only captures of this day (UTC) and later ones, such as 2026-11-20
    #[arg(long, value_name = "DAY")]
    pub(crate) from: Option<String>,
    /// Only captures of this day (UTC) and earlier ones
    #[arg(long, value_name = "DAY")]
    pub(crate) until: Option<String>,
}

/// What is read of a capture.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReadArgs {
    /// Id of the capture
    pub(crate) id: String,
    /// What to read
    #[arg(long, default_value = "markdown", value_parser = PossibleValuesParser::new(text_formats()))]
    pub(crate) format: String,
    /// Print at most this many tokens, and say how to go on [default: everything]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=50_000))]
    pub(crate) max_tokens: Option<u32>,
    /// The byte at which to begin
    #[arg(long, value_name = "BYTE", default_value_t = 0)]
    pub(crate) from: u64,
    /// With --format difference: id of the earlier capture [default: that of --compare-to when it was captured]
    #[arg(long, value_name = "ID")]
    pub(crate) compare_to: Option<String>,
}

/// Statuses of a capture.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Status {
    Pending,
    Processing,
    Done,
    Failed,
}

impl Status {
    /// The API's name of the status.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// Commands for webhooks.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// List webhooks
    List,
    /// Create a webhook and show its secret once
    Create {
        /// URL that receives the messages
        url: String,
        /// Events to send: grab.done, grab.failed, grab.changed, monitor.changed, monitor.failed, monitor.recovered, site.finished,
        /// credits.low or * for all
        #[arg(long = "event", value_name = "EVENT", default_value = "*")]
        events: Vec<String>,
        /// Description
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Show one webhook
    Show {
        /// Id of the webhook
        id: String,
    },
    /// Change a webhook
    Update {
        /// Id of the webhook
        id: String,
        /// New URL
        #[arg(long)]
        url: Option<String>,
        /// New list of events
        #[arg(long = "event", value_name = "EVENT")]
        events: Vec<String>,
        /// New description
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Enable the webhook
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// Disable the webhook and drop its pending messages
        #[arg(long)]
        disable: bool,
    },
    /// Delete a webhook
    Delete {
        /// Id of the webhook
        id: String,
    },
    /// Replace the secret and show the new one once; the old secret also signs for 24 hours
    RotateSecret {
        /// Id of the webhook
        id: String,
    },
    /// Send a test message
    Test {
        /// Id of the webhook
        id: String,
    },
    /// List deliveries and their results
    Deliveries {
        /// Id of the webhook
        id: String,
    },
    /// Send a message again
    Redeliver {
        /// Id of the webhook
        id: String,
        /// Id of the delivery
        delivery: String,
    },
}
