//! `grabd`: captures web pages as hosted images.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use grabd::config::{Config, DEFAULT, LogFormat, ProcessRole};
use grabd::{admin, allocator, doctor, migrate, serve};
use tracing_subscriber::EnvFilter;

#[derive(Parser)]
#[command(name = "grabd", version, about = "Captures web pages as hosted images", propagate_version = true)]
struct Cli {
    /// A configuration file that overrides the defaults.
    #[arg(long, global = true, env = "GRABD_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service until SIGTERM or Ctrl-C.
    Serve {
        /// The part of the work that this process does: see docs/FLEET.md. Overrides the configuration.
        #[arg(long, value_name = "ROLE")]
        role: Option<ProcessRole>,
        /// Capture this URL once everything is up, print the grab, and continue serving.
        #[arg(long, value_name = "URL")]
        capture: Option<String>,
        /// Print the keys of the team that the first start creates. Also done if the output is a terminal.
        #[arg(long)]
        dev: bool,
    },
    /// Bring the database schema up to date.
    Migrate {
        /// Only print what would run, and whether processes of an earlier version may continue. Fails if they must stop.
        #[arg(long)]
        check: bool,
    },
    /// Print the default configuration, which documents all settings.
    Config,
    /// Print shell completions.
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page.
    Man,
    /// Check everything the service needs, and print one line for each check.
    Doctor,
    /// Manage teams, keys, users, credits and the ledger.
    Admin(admin::Args),
}

/// This program, even if its file has been replaced since it was started.
const OWN_EXECUTABLE: &str = "/proc/self/exe";

fn main() -> ExitCode {
    // A jailed browser is started by running this program as the launcher, which must happen before there are threads.
    match grabd_browser::launcher(std::env::args_os()) {
        Some(code) => code,
        None => {
            let cli = Cli::parse();
            if matches!(cli.command, Command::Serve { .. }) {
                allocator::restart_with_fixed_threshold();
            }
            start(cli)
        }
    }
}

#[tokio::main]
async fn start(cli: Cli) -> ExitCode {
    match run(cli).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("grabd: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let role = match cli.command {
        Command::Config => {
            print_whole(DEFAULT.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "grabd", &mut script);
            print_whole(&script)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            print_whole(&page)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Serve { role, .. } => role,
        Command::Migrate { .. } | Command::Doctor | Command::Admin(_) => None,
    };
    let config = Config::load(cli.config.as_deref(), role)?;
    match cli.command {
        Command::Config | Command::Completions { .. } | Command::Man => {}
        Command::Serve { role: _, capture, dev } => {
            log_to_stderr(&config, &config.log.filter)?;
            for variable in &config.foreign_variables {
                tracing::warn!(variable, "is no setting of grabd, and is ignored");
            }
            // A journal is no place for keys.
            let prints_keys = dev || std::io::stdout().is_terminal();
            serve::run(config, Some(Path::new(OWN_EXECUTABLE)), capture.as_deref(), prints_keys).await?;
        }
        Command::Migrate { check } => {
            log_to_stderr(&config, "warn")?;
            let report = migrate::run(&config, check).await?;
            print_whole(report.text.as_bytes())?;
            return Ok(if report.success { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Doctor => {
            log_to_stderr(&config, "error")?;
            let healthy = doctor::run(&config, Some(Path::new(OWN_EXECUTABLE))).await;
            return Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Admin(args) => {
            log_to_stderr(&config, "warn")?;
            let success = admin::run(&config, args).await?;
            return Ok(if success { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a text. A reader that ends early, such as `head`, is no error.
fn print_whole(text: &[u8]) -> std::io::Result<()> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn log_to_stderr(config: &Config, filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).map_err(|error| anyhow::anyhow!("`log.filter`: {error}"))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .with_target(false);
    match config.log.format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
