//! Looks up hosts and keeps of the answer what may be connected to. The library connects to these addresses and looks nothing up again, so a
//! name whose second answer differs from the first gains nothing.

use std::sync::Arc;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::allow::AllowList;
use crate::url::Url;

/// A resolver behind the list of allowed hosts.
#[derive(Debug)]
pub(crate) struct CheckedResolver {
    pub(crate) allowed: Arc<AllowList>,
    pub(crate) inner: Arc<dyn Resolver>,
}

impl Resolver for CheckedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let refused = |host: &str| {
            let reason = format!("'{host}' is not among http_allowed_hosts");
            ureq::Error::Io(std::io::Error::new(std::io::ErrorKind::PermissionDenied, reason))
        };
        let url = Url::parse(&uri.to_string()).map_err(|_| refused(uri.host().unwrap_or("")))?;
        if !self.allowed.may_resolve(&url.host, url.port) {
            return Err(refused(&url.host));
        }
        let found = self.inner.resolve(uri, config, timeout)?;
        let mut kept = self.empty();
        for address in found.iter().filter(|address| self.allowed.allows(&url.host, **address)) {
            kept.push(*address);
        }
        if kept.is_empty() {
            return Err(refused(&url.host));
        }
        Ok(kept)
    }
}
