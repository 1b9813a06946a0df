//! `footbridge serve`.

use anyhow::Context as _;

use super::{ServeArgs, load_config, sources};
use crate::{
    config::Writable,
    harness::descriptors::needed,
    serve::{MAX_SESSIONS, Serve, serve},
};
use footbridge_processes::{descriptors::raise, sys};

pub(super) fn main(args: ServeArgs) -> anyhow::Result<i32> {
    crate::log::start("info,rmcp=off")?;
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    let (config, folders) = load_config(&args.files, Writable::default())?;
    sources::said(&config.looked).iter().for_each(|line| tracing::info!("{line}"));
    if config.servers.is_empty() {
        tracing::warn!("no MCP server is configured: name a servers file with --config");
    }
    raise(needed(MAX_SESSIONS, &config.servers, &config.limits));
    let runtime = super::runtime()?;
    let served = runtime.block_on(serve(Serve { files: args.files.config, config }, &folders));
    runtime.shutdown_background();
    served.map(|()| 0)
}
