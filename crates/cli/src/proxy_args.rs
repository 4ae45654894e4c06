//! The arguments of `grab proxy`.

use clap::Subcommand;

/// Commands for proxies.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ProxyCommand {
    /// Store a proxy; captures use it with --proxy and its id
    Create {
        /// Where it is: http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT
        url: String,
        /// Its name, which messages of failed captures have
        #[arg(long)]
        name: String,
        #[command(flatten)]
        login: LoginArgs,
    },
    /// List proxies, newest first
    List,
    /// Show one proxy, with its last use and its last failure
    Show {
        /// Id of the proxy
        id: String,
    },
    /// Change a proxy; what is left out stays as it is
    Update {
        /// Id of the proxy
        id: String,
        /// The new name
        #[arg(long)]
        name: Option<String>,
        /// The new URL
        #[arg(long)]
        url: Option<String>,
        #[command(flatten)]
        login: LoginArgs,
        /// Remove the user name and password
        #[arg(long, conflicts_with_all = ["username", "password_stdin"])]
        no_login: bool,
    },
    /// Delete a proxy; captures that name it fail from then on
    Delete {
        /// Id of the proxy
        id: String,
    },
}

/// User name and password of a proxy.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// User name for the proxy
    #[arg(long)]
    pub(crate) username: Option<String>,
    /// Read the password for the proxy from stdin, where other users of this machine do not see it
    #[arg(long)]
    pub(crate) password_stdin: bool,
}
