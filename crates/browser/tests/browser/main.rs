//! Chromium for real, against pages that are as the web is.

#[cfg(test)]
mod blocked;
#[cfg(test)]
mod failing;
#[cfg(test)]
mod framing;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod jail;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod pictures;
#[cfg(test)]
mod readiness;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod selftest;
#[cfg(test)]
mod site;
#[cfg(test)]
mod supervision;
