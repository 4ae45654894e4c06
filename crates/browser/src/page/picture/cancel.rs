//! Ends work whose result is no longer needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a blocking task when this is dropped, since the result is no longer needed then.
#[derive(Default)]
pub(in crate::page) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Becomes true when this is dropped.
    pub(in crate::page) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_is_set_when_the_result_is_dropped() {
        let cancel = Cancel::default();
        let flag = cancel.flag();
        assert!(!flag.load(Ordering::Relaxed));
        drop(cancel);
        assert!(flag.load(Ordering::Relaxed));
    }
}
