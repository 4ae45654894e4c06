//! The arguments of `grab monitor`.

use std::path::PathBuf;

use clap::{ArgGroup, Subcommand, ValueHint};

use crate::format::Format;
use crate::options::OptionArgs;
use crate::share::share;

/// Commands for monitors.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum MonitorCommand {
    /// Watch pages: capture them by a schedule, and report when they change. Each capture costs a credit
    Create(Box<CreateMonitorArgs>),
    /// List monitors, newest first
    List {
        /// Maximum number of monitors
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
    },
    /// Show one monitor
    Show {
        /// Id of the monitor
        id: String,
    },
    /// List the runs of a monitor, newest first
    Runs {
        /// Id of the monitor
        id: String,
        /// Maximum number of runs
        #[arg(long, value_name = "N", default_value_t = 25)]
        limit: u32,
    },
    /// Download the runs of a monitor and their images as a zip archive
    History {
        /// Id of the monitor
        id: String,
        /// File to write
        #[arg(short, long, value_name = "FILE", default_value = "history.zip", value_hint = ValueHint::FilePath)]
        output: PathBuf,
    },
    /// Create public addresses of an Atom feed and a badge of a monitor, which replace the former ones
    Feed {
        /// Id of the monitor
        id: String,
        /// Remove the addresses
        #[arg(long)]
        off: bool,
    },
    /// Stop the schedule of a monitor until it is resumed
    Pause {
        /// Id of the monitor
        id: String,
    },
    /// Continue the schedule of a monitor
    Resume {
        /// Id of the monitor
        id: String,
    },
    /// Make a capture of the monitor the one that later captures are compared with
    Accept {
        /// Id of the monitor
        id: String,
        /// Id of the capture [default: the latest one that is done]
        #[arg(long, value_name = "ID")]
        grab: Option<String>,
    },
    /// Delete a monitor and the list of its runs; its captures stay
    Delete {
        /// Id of the monitor
        id: String,
    },
}

/// A monitor to create.
#[derive(Clone, Debug, clap::Args)]
#[command(group(ArgGroup::new("compared").multiple(true).args(["compare_status", "compare_text", "compare_elements"])))]
pub(crate) struct CreateMonitorArgs {
    /// URL of the page, or of up to 50 pages: each gets a monitor of its own, or none does
    #[arg(value_name = "URL", required = true, value_hint = ValueHint::Url)]
    pub(crate) urls: Vec<String>,
    /// How often to capture the page: a number and m, h or d, such as 30m, 6h or 1d
    #[arg(long, value_name = "TIME", required_unless_present = "cron", conflicts_with = "cron")]
    pub(crate) every: Option<String>,
    /// When to capture the page: five fields, such as "0 8 * * 1-5" for 8:00 on weekdays
    #[arg(long, value_name = "FIELDS")]
    pub(crate) cron: Option<String>,
    /// The time zone of --cron, such as Europe/Vienna [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "cron", conflicts_with = "every")]
    pub(crate) cron_time_zone: Option<String>,
    /// Name of the monitor [default: the host of the page]; with several URLs, each name ends with host and path
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// A larger share of the image than this must change, from 0 (any change) to 1 [default: 0.001]
    #[arg(long, value_name = "RATIO", value_parser = share, conflicts_with = "no_compare_image")]
    pub(crate) threshold: Option<f64>,
    /// CSS selector of elements that are not shown in the captures, so that they never differ, or a part of the image as
    /// x,y,width,height in CSS pixels; can be repeated
    #[arg(long, value_name = "CSS", conflicts_with = "no_compare_image")]
    pub(crate) ignore: Vec<String>,
    /// Regions that differ do not count if they have fewer pixels [default: 0]
    #[arg(long, value_name = "PIXELS", conflicts_with = "no_compare_image")]
    pub(crate) min_region: Option<u32>,
    /// Do not compare the images, only the HTTP status, the text or the elements
    #[arg(long, requires = "compared")]
    pub(crate) no_compare_image: bool,
    /// Compare the HTTP status of the page, too
    #[arg(long)]
    pub(crate) compare_status: bool,
    /// Compare the text of the page, too
    #[arg(long)]
    pub(crate) compare_text: bool,
    /// Compare the links, buttons, fields and other elements with a name, too
    #[arg(long)]
    pub(crate) compare_elements: bool,
    /// Regular expression: what it matches in a line of the text does not count; can be repeated
    #[arg(long, value_name = "REGEX", requires = "compare_text")]
    pub(crate) ignore_pattern: Vec<String>,
    /// The capture to compare with: the latest one that was reported, or the accepted one, which only `grab monitor accept`
    /// changes [default: latest]
    #[arg(long, value_name = "WORD", value_parser = ["latest", "accepted"])]
    pub(crate) baseline: Option<String>,
    /// How many captures in a row must differ before it is reported, from 1 to 10 [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) alert_after: Option<u32>,
    /// Send no messages to webhooks
    #[arg(long)]
    pub(crate) no_webhook: bool,
    /// Send no e-mail
    #[arg(long)]
    pub(crate) no_email: bool,
    /// Send no alerts in this time of each day, but when it is over, such as 22:00-07:00
    #[arg(long, value_name = "FROM-TO", value_parser = two_times)]
    pub(crate) quiet_hours: Option<(String, String)>,
    /// The time zone of --quiet-hours, such as Europe/Vienna [default: that of the schedule]
    #[arg(long, value_name = "ZONE", requires = "quiet_hours")]
    pub(crate) quiet_time_zone: Option<String>,
    /// How many runs to keep, from 1 to 1000 [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<u32>,
    /// Format of the images [default: png]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}

/// Reads `FROM-TO`. The service checks the times.
fn two_times(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('-').map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()));
    parts.ok_or_else(|| "must be two times of day, such as 22:00-07:00".to_owned())
}
