//! A temporary PostgreSQL server, shared by concurrently running tests.
//!
//! Every test process holds a shared lock on one file while it needs the server. The first one starts the server and a
//! watcher process. The watcher waits for the exclusive lock, which the kernel grants when the last test process has
//! exited, even by a crash. It then stops the server and removes its files.

use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use grabd_migrations::Migrator;
use grabd_store::Store;
use sea_orm::{ConnectionTrait, DatabaseConnection};

/// The database of one test on the shared server.
pub(crate) struct PrivateDatabase {
    cluster: Cluster,
    /// A connection to another database of the server, for dropping this one. A new one would take milliseconds of processor
    /// time.
    server: DatabaseConnection,
    name: String,
}

struct Cluster {
    home: PathBuf,
    /// Holds the shared lock; closing the file releases it.
    _user: File,
}

impl PrivateDatabase {
    /// An empty database.
    pub(crate) async fn create() -> Self {
        Self::create_from(Cluster::join_blocking().await, "template1").await
    }

    /// A database with the current schema: a copy of one that was migrated once, which takes a fraction of the time.
    pub(crate) async fn create_migrated() -> Self {
        let cluster = Cluster::join_blocking().await;
        let template = cluster.migrated().await;
        Self::create_from(cluster, &template).await
    }

    async fn create_from(cluster: Cluster, template: &str) -> Self {
        // The name of a new temporary directory is unique.
        let name = tempfile::Builder::new().prefix("test").tempdir_in(&cluster.home).unwrap();
        let name = name.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        let server = cluster.connect().await;
        // Copying files takes half of the processor time of writing their pages to the log.
        let create = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy");
        server.execute_unprepared(&create).await.unwrap();
        Self { cluster, server, name }
    }

    pub(crate) fn url(&self) -> String {
        self.cluster.url(&self.name)
    }

    pub(crate) async fn drop_database(self) {
        self.server.execute_unprepared(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await.unwrap();
        self.server.close().await.unwrap();
    }

    /// The server's log lines for this database, including continuation lines.
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read_to_string(self.cluster.home.join("log")).unwrap();
        let mut is_ours = false;
        let mut lines = String::new();
        for line in log.lines() {
            if !line.starts_with('\t') {
                is_ours = line.starts_with(&format!("{} ", self.name));
            }
            if is_ours {
                lines.push_str(line);
                lines.push('\n');
            }
        }
        lines
    }
}

impl Cluster {
    async fn join_blocking() -> Self {
        tokio::task::spawn_blocking(Self::join).await.unwrap()
    }

    /// The name of a database with the current schema and without rows, which nobody is connected to.
    async fn migrated(&self) -> String {
        let mut schema = DefaultHasher::new();
        Migrator::SOURCES.hash(&mut schema);
        let name = format!("migrated_{:016x}", schema.finish());
        let home = self.home.clone();
        let migrating = tokio::task::spawn_blocking(move || {
            let file = lock_file(&home.join("migrate.lock"));
            file.lock().unwrap();
            file
        });
        let migrating = migrating.await.unwrap();
        // In the data directory, so that it is deleted with the database.
        let done = self.home.join("data").join(&name);
        if !done.exists() {
            // An earlier test may have been killed while it migrated.
            let server = self.connect().await;
            server.execute_unprepared(&format!("DROP DATABASE IF EXISTS {name}")).await.unwrap();
            server.execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
            server.close().await.unwrap();
            let store = Store::open(&self.url(&name)).await.unwrap();
            store.migrate().await.unwrap();
            store.close().await;
            std::fs::write(done, "").unwrap();
        }
        drop(migrating);
        name
    }

    fn join() -> Self {
        let mut checkout = DefaultHasher::new();
        env!("CARGO_TARGET_TMPDIR").hash(&mut checkout);
        // Not below the target directory: a socket path is limited to 107 bytes, and the server's user needs access.
        let home = std::env::temp_dir().join(format!("grabd-postgres-{:016x}", checkout.finish()));
        std::fs::create_dir_all(&home).unwrap();
        let user = lock_file(&home.join("users.lock"));
        user.lock_shared().unwrap();
        let starting = lock_file(&home.join("start.lock"));
        starting.lock().unwrap();
        let cluster = Self { home, _user: user };
        if !cluster.is_running() {
            cluster.start();
            cluster.watch();
        }
        drop(starting);
        cluster
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@localhost/{database}?host={}", self.home.join("data").display())
    }

    /// Connects to a database that no test uses.
    async fn connect(&self) -> DatabaseConnection {
        sea_orm::Database::connect(self.url("postgres")).await.unwrap()
    }

    /// Whether the server's process exists, as `pg_ctl status` finds out, which would start two processes for each test.
    fn is_running(&self) -> bool {
        let process = std::fs::read_to_string(self.home.join("data/postmaster.pid")).unwrap_or_default();
        process.lines().next().is_some_and(|pid| Path::new("/proc").join(pid).exists())
    }

    fn start(&self) {
        let data = self.home.join("data");
        if data.exists() {
            std::fs::remove_dir_all(&data).unwrap();
        }
        std::fs::create_dir(&data).unwrap();
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&data));
        }
        run(self.program("initdb").arg("-D").arg(&data).args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "-N"]));
        // In the data directory, which the server's user owns. The shared memory is there, too: it is deleted even if the
        // server is killed.
        let log = data.join("server.log");
        let options = format!(
            "-c listen_addresses='' -c unix_socket_directories='{}' -c fsync=off -c full_page_writes=off \
             -c synchronous_commit=off -c max_connections=200 -c dynamic_shared_memory_type=mmap \
             -c log_line_prefix='%d '",
            data.display()
        );
        run(self
            .program("pg_ctl")
            .arg("-D")
            .arg(&data)
            .arg("-l")
            .arg(&log)
            .arg("-o")
            .arg(options)
            .args(["-w", "start"]));
        let link = self.home.join("log");
        if link.is_symlink() {
            std::fs::remove_file(&link).unwrap();
        }
        std::os::unix::fs::symlink(log, link).unwrap();
    }

    /// Starts a process that stops the server and removes its files when no process holds the shared lock.
    fn watch(&self) {
        let data = self.home.join("data");
        let mut watcher = Command::new("setsid");
        watcher.arg("--fork").arg("flock").arg(self.home.join("users.lock"));
        watcher.args(["sh", "-c", r#""$@"; rm -rf "$0""#]).arg(&data);
        let pg_ctl = self.program("pg_ctl");
        watcher.arg(pg_ctl.get_program()).args(pg_ctl.get_args());
        run(watcher.arg("-D").arg(&data).args(["-m", "immediate", "stop"]));
    }

    /// A command for one of the server's programs, which refuse to run as root.
    fn program(&self, name: &str) -> Command {
        let path = binaries().join(name);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.current_dir(&self.home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn lock_file(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Debian installs the server's programs outside the PATH, in one directory per version.
fn binaries() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    installed
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .max()
        .expect("PostgreSQL is not installed below /usr/lib/postgresql; run script/setup")
}

fn run(command: &mut Command) {
    let done = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let done = done.unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}; run script/setup"));
    assert!(done.success(), "{command:?} failed: {done}");
}
