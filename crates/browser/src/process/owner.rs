//! The user that browsers run as, which is never root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The user that a service running as root runs its browsers as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowserUser {
    /// By name, looked up in `/etc/passwd`.
    Named(String),
    /// By numbers.
    Ids {
        /// User ID.
        uid: u32,
        /// Group ID. There are no supplementary groups.
        gid: u32,
    },
}

/// Tried in this order when the service is root and no user is configured.
const FALLBACKS: [&str; 2] = ["grabd", "nobody"];

/// The owner of a browser process and its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The service's own user, which is not root.
    Ourselves,
    /// Another user, which a service running as root switches to.
    Other { uid: u32, gid: u32 },
}

/// Why no user is available to run browsers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OwnerError {
    /// The user does not exist.
    #[error("the user {0} does not exist")]
    Unknown(String),
    /// Root was configured.
    #[error("the browser does not run as root")]
    Root,
    /// None is configured, and neither fallback exists.
    #[error("the service runs as root, no browser user is named, and neither `grabd` nor `nobody` exists")]
    NoneAvailable,
}

impl Owner {
    /// Selects the user. `user` is ignored unless the service is root.
    pub(crate) fn find(user: Option<&BrowserUser>) -> Result<Self, OwnerError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Ourselves);
        }
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self::select(&passwd, user)
    }

    fn select(passwd: &str, user: Option<&BrowserUser>) -> Result<Self, OwnerError> {
        let (uid, gid) = match user {
            Some(BrowserUser::Ids { uid, gid }) => (*uid, *gid),
            Some(BrowserUser::Named(name)) => ids(passwd, name).ok_or_else(|| OwnerError::Unknown(name.clone()))?,
            None => FALLBACKS.into_iter().find_map(|name| ids(passwd, name)).ok_or(OwnerError::NoneAvailable)?,
        };
        match (uid, gid) {
            (0, _) | (_, 0) => Err(OwnerError::Root),
            (uid, gid) => Ok(Self::Other { uid, gid }),
        }
    }
}

fn ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then_some(())?;
        let (_password, uid, gid) = (fields.next()?, fields.next()?, fields.next()?);
        Some((uid.parse().ok()?, gid.parse().ok()?))
    })
}

/// Checks that the owner can reach a directory. The error is the first directory that denies access.
pub(crate) fn can_enter(owner: Owner, directory: &Path) -> Result<(), PathBuf> {
    let Owner::Other { uid, gid } = owner else { return Ok(()) };
    let barred = |path: &&Path| {
        fs::metadata(path).is_ok_and(|data| {
            let bit = match (data.uid() == uid, data.gid() == gid) {
                (true, _) => 0o100,
                (false, true) => 0o010,
                (false, false) => 0o001,
            };
            data.permissions().mode() & bit == 0
        })
    };
    match directory.ancestors().filter(barred).last() {
        Some(path) => Err(path.to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n";

    #[test]
    fn root_is_never_selected() {
        let named = |name: &str| BrowserUser::Named(name.into());
        let with_grabd = format!("{PASSWD}grabd:x:200:201::/:/bin/false\n");
        let nobody = Owner::Other { uid: 65534, gid: 65534 };
        for (passwd, user, owner) in [
            (PASSWD, None, Ok(nobody)),
            (&with_grabd, None, Ok(Owner::Other { uid: 200, gid: 201 })),
            (&with_grabd, Some(named("nobody")), Ok(nobody)),
            (PASSWD, Some(BrowserUser::Ids { uid: 7, gid: 8 }), Ok(Owner::Other { uid: 7, gid: 8 })),
            (PASSWD, Some(named("grabd")), Err(OwnerError::Unknown("grabd".into()))),
            (PASSWD, Some(named("toor")), Err(OwnerError::Root)),
            (PASSWD, Some(BrowserUser::Ids { uid: 0, gid: 8 }), Err(OwnerError::Root)),
            (PASSWD, Some(BrowserUser::Ids { uid: 8, gid: 0 }), Err(OwnerError::Root)),
            ("", None, Err(OwnerError::NoneAvailable)),
        ] {
            assert_eq!(Owner::select(passwd, user.as_ref()), owner, "{user:?}");
        }
    }

    #[test]
    fn inaccessible_parent_directory_is_returned() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("inside");
        fs::create_dir(&inside).unwrap();
        let other = Owner::Other { uid: 60_001, gid: 60_001 };
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o711)).unwrap();
        fs::set_permissions(&inside, PermissionsExt::from_mode(0o711)).unwrap();
        assert_eq!(can_enter(other, &inside), Ok(()));
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
        assert_eq!(can_enter(other, &inside), Err(directory.path().to_owned()));
        assert_eq!(can_enter(Owner::Ourselves, &inside), Ok(()));
    }
}
