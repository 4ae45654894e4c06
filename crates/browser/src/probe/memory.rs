//! The size of the memory pages that browsers get.

use std::fs;
use std::path::Path;

/// The kernel's settings (`Documentation/admin-guide/mm/transhuge.rst` of Linux).
pub(super) const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// Sizes with which captures take less processor time, in KiB. Anonymous memory in pages of 2 MiB, which is also a setting, did
/// not help.
const SIZES: [u32; 6] = [16, 32, 64, 128, 256, 512];

/// The size of pages, for operators. Recommends larger ones if the kernel has a setting for them.
pub(super) fn describe(settings: &Path) -> String {
    let anonymous = size(settings, "enabled");
    let shared = size(settings, "shmem_enabled");
    match (anonymous, shared) {
        (Some(anonymous), Some(shared)) => format!("pages of {anonymous} KiB, shared memory of {shared} KiB"),
        _ if settings.join("hugepages-64kB/shmem_enabled").exists() => {
            "pages of 4 KiB; with larger ones, captures take less processor time (docs/operating/browser.md)".to_owned()
        }
        _ => "pages of 4 KiB, since this kernel has no setting for larger ones".to_owned(),
    }
}

/// The first size that processes get without asking for it.
fn size(settings: &Path, name: &str) -> Option<u32> {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let for_all = read(&settings.join(name));
    SIZES.into_iter().find(|size| {
        let of_size = read(&settings.join(format!("hugepages-{size}kB")).join(name));
        of_size.contains("[always]") || of_size.contains("[inherit]") && for_all.contains("[always]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_that_of_the_settings() {
        let directory = tempfile::tempdir().unwrap();
        let detail = || describe(directory.path());
        assert!(detail().contains("no setting"));
        let of_64 = directory.path().join("hugepages-64kB");
        fs::create_dir(&of_64).unwrap();
        fs::write(of_64.join("enabled"), "[always] inherit madvise never\n").unwrap();
        fs::write(of_64.join("shmem_enabled"), "always [inherit] within_size advise never\n").unwrap();
        fs::write(directory.path().join("shmem_enabled"), "always within_size [advise] never deny force\n").unwrap();
        assert!(detail().contains("docs/operating/browser.md"), "{}", detail());
        fs::write(directory.path().join("shmem_enabled"), "[always] within_size advise never deny force\n").unwrap();
        assert_eq!(detail(), "pages of 64 KiB, shared memory of 64 KiB");
    }
}
