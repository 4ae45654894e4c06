//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  grab https://example.com -o page.png          one picture into a file
  grab https://example.com -o - | file -        the bytes to the next program
  grab --full-page --format webp https://example.com https://example.org -o shots/
  grab --from urls.txt -o shots/ --jobs 8       many, eight at a time
  grab --async --wait 120 https://example.com   queued, then followed to its end

Exit codes:
  0  everything was captured        4  no credits left
  1  a capture failed               5  a limit held on beyond the retries
  2  something was asked wrongly    6  the service cannot be reached
  3  not signed in, or not allowed  7  the service or this machine failed
  130 interrupted";

/// Captures web pages through a grabd service.
#[derive(Debug, Parser)]
#[command(name = "grab", version, about, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) capture: Capture,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// Which service, and as whom.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// Address of the service, such as `https://grabd.example/v1`
    #[arg(long, global = true, env = "GRAB_BASE_URL", value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    /// API key; better in GRAB_API_KEY than here, where other users of this machine can see it
    #[arg(long, global = true, env = "GRAB_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
    /// Configuration file [default: grab/config.toml below XDG_CONFIG_HOME or ~/.config]
    #[arg(long, global = true, env = "GRAB_CONFIG", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Print what programs read: JSON, one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no progress and no summary
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// How often a request that may be repeated is tried again
    #[arg(long, global = true, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub(crate) retries: u32,
}

/// What to capture, and how.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Capture")]
pub(crate) struct Capture {
    /// Addresses of the pages
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) urls: Vec<String>,
    /// Read addresses from a file, one a line; empty lines and lines that begin with # are passed over; - is stdin
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
    /// Where the picture goes: a file, a directory (as many pages as you like), or - for stdout [default: a file named
    /// after the page]
    #[arg(long, short, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    /// Fetch no picture, only have it made
    #[arg(long, conflicts_with = "output")]
    pub(crate) no_download: bool,
    /// Pass over pages whose file is there already
    #[arg(long)]
    pub(crate) skip_existing: bool,
    /// Width of the window in pixels [320 to 1920, default: 1280]
    #[arg(long, value_name = "PIXELS")]
    pub(crate) width: Option<i64>,
    /// Height of the window in pixels [240 to 1080, default: 720]
    #[arg(long, value_name = "PIXELS")]
    pub(crate) height: Option<i64>,
    /// Format of the picture [default: what the name of the file says, else png]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    /// Capture the whole page instead of the first screen
    #[arg(long)]
    pub(crate) full_page: bool,
    /// Wait so long after the page has loaded, in milliseconds [0 to 10000]
    #[arg(long, value_name = "MS")]
    pub(crate) delay_ms: Option<i64>,
    /// Capture only the element that this CSS selector finds
    #[arg(long, value_name = "CSS")]
    pub(crate) selector: Option<String>,
    /// Queue the capture and print its id; with --wait, follow it to its end
    #[arg(long = "async")]
    pub(crate) queued: bool,
    /// Wait at most so many seconds for a queued capture (implies --async)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) wait: Option<u64>,
    /// Captures at a time
    #[arg(long, short, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,
    /// Idempotency-Key of the one capture: asked again with the same key, the service answers the same and charges once
    /// [default: a new one for each page]
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// Formats of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Png,
    Jpeg,
    Webp,
}

impl Format {
    /// The contract's word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }

    /// The format that the ending of a file's name means.
    pub(crate) fn of_ending(ending: &str) -> Option<Self> {
        match ending.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Png),
            "jpg" | "jpeg" => Some(Self::Jpeg),
            "webp" => Some(Self::Webp),
            _ => None,
        }
    }
}

/// Everything but capturing.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Verb {
    /// List captures, the newest first
    List {
        /// How many
        #[arg(long, value_name = "N", default_value_t = 25)]
        limit: u32,
        /// Only those that stand so
        #[arg(long)]
        status: Option<Status>,
        /// Only those that are older than this one
        #[arg(long, value_name = "ID")]
        after: Option<String>,
    },
    /// Show one capture
    Show {
        /// Id of the capture
        id: String,
        /// Open the picture in this machine's browser
        #[arg(long)]
        open: bool,
        /// Fetch the picture into a file; - is stdout
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Follow one capture to its end
    Watch {
        /// Id of the capture
        id: String,
    },
    /// Delete the picture of a capture
    Delete {
        /// Ids of captures
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Show credits, plan and what was captured lately
    Usage,
    /// Show what captures cost, here and elsewhere
    Pricing {
        /// Compare with this one only
        #[arg(long)]
        provider: Option<String>,
        /// With all evidence
        #[arg(long)]
        full: bool,
    },
    /// Sign in through the browser
    Login {
        /// Print the address instead of opening it
        #[arg(long)]
        no_browser: bool,
    },
    /// Sign out, here and at the service
    Logout,
    /// Manage where messages about finished captures go
    #[command(subcommand)]
    Webhooks(Webhooks),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// How a capture may stand.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Status {
    Pending,
    Processing,
    Done,
    Failed,
}

impl Status {
    /// The contract's word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// What can be done with webhooks.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Webhooks {
    /// List them
    List,
    /// Make one, and show its secret this once
    Create {
        /// Where the messages go
        url: String,
        /// Which messages: grab.done, grab.failed or * for all
        #[arg(long = "event", value_name = "EVENT", default_value = "*")]
        events: Vec<String>,
        /// What people call it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Show one
    Show {
        /// Id of the webhook
        id: String,
    },
    /// Change one
    Update {
        /// Id of the webhook
        id: String,
        /// Where the messages go from now on
        #[arg(long)]
        url: Option<String>,
        /// Which messages from now on
        #[arg(long = "event", value_name = "EVENT")]
        events: Vec<String>,
        /// What people call it from now on
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Send messages again
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// Send no messages, and forget those that are owed
        #[arg(long)]
        disable: bool,
    },
    /// Remove one
    Delete {
        /// Id of the webhook
        id: String,
    },
    /// Give one a new secret, and show it this once; the old one signs along for 24 hours
    RotateSecret {
        /// Id of the webhook
        id: String,
    },
    /// Send a message that means nothing
    Test {
        /// Id of the webhook
        id: String,
    },
    /// List what was sent, and what came of it
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
